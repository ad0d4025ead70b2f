/**
 * Declares the module that `cargo xtask web` generates from the wasm; `web/tsconfig.json` has its
 * path.
 */
declare module "warren-replica" {
  type Engine = import("./shared/wasm-engine.js").EngineModule;
  const start: Engine["default"];
  export default start;
  export const openReplica: Engine["openReplica"];
  export const SignInRequest: Engine["SignInRequest"];
}
