/** Declares style sheets, which modules import so that the bundler emits them with the script. */
declare module "*.css";
