/** Styles are the bundler's: a module that imports one gets nothing from it. */
declare module "*.css";
