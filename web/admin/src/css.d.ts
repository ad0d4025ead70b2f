/** Declares style sheets, which the bundler handles: importing one yields no value. */
declare module "*.css";
