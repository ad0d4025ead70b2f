/** The module that `cargo xtask web` makes of the wasm; `web/tsconfig.json` says where it is. */
declare module "warren-replica" {
  type Engine = import("./shared/wasm-engine.js").EngineModule;
  const start: Engine["default"];
  export default start;
  export const openReplica: Engine["openReplica"];
  export const SignInRequest: Engine["SignInRequest"];
}
