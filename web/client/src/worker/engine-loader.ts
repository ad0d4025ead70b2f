/**
 * Loads the wasm once per worker: fetches and compiles it, and passes it to the module that drives
 * it.
 *
 * A fetch that the network interrupted is tried again by the next caller. If the server answered
 * with something other than the wasm, it would do so again, and the error is reported at once.
 */
import { WarrenError, type ErrorCode } from "../api.js";
import type { EngineModule } from "../shared/wasm-engine.js";

export interface EngineLoader {
  /** Fetches and compiles the wasm, so that `load` needs no network. */
  preload(): Promise<void>;
  /** Loads the engine. Rejects with `unreachable`, which may pass, or `engine_unavailable`. */
  load(): Promise<EngineModule>;
}

export function enginesOf(code: EngineModule, wasm: string): EngineLoader {
  let getting: Promise<WebAssembly.Module> | undefined;
  let loading: Promise<EngineModule> | undefined;

  const get = (): Promise<WebAssembly.Module> =>
    (getting ??= compile(wasm).catch((thrown: unknown) => {
      getting = undefined;
      throw thrown;
    }));

  async function load(): Promise<EngineModule> {
    try {
      await code.default({ module_or_path: await get() });
      return code;
    } catch (thrown) {
      loading = undefined;
      throw thrown;
    }
  }

  return {
    async preload() {
      // After a failure, `load` tries again, and reports it.
      await get().catch(() => undefined);
    },
    load: () => (loading ??= load()),
  };
}

async function compile(wasm: string): Promise<WebAssembly.Module> {
  const answer = await fetch(wasm).catch((thrown: unknown) => {
    throw unavailable("unreachable", wasm, thrown);
  });
  if (!answer.ok) {
    throw unavailable("engine_unavailable", wasm, `the server answered ${answer.status}`);
  }
  const kind = answer.headers.get("content-type") ?? "no type";
  if (kind.startsWith("text/html")) {
    throw unavailable("engine_unavailable", wasm, "the server answered with a page (text/html)");
  }
  try {
    return kind === "application/wasm"
      ? await WebAssembly.compileStreaming(answer)
      : await WebAssembly.compile(await answer.arrayBuffer());
  } catch (thrown) {
    // A broken connection is a TypeError; wrong bytes and a refusing policy are not.
    const passes = thrown instanceof TypeError;
    throw unavailable(passes ? "unreachable" : "engine_unavailable", wasm, thrown);
  }
}

function unavailable(code: ErrorCode, wasm: string, reason: unknown): Error {
  const why = reason instanceof Error ? reason.message : String(reason);
  const policy = /unsafe-eval|Content Security Policy/.test(why)
    ? "allow 'wasm-unsafe-eval' in the page's script-src"
    : "put replica_bg.wasm from @warren/client/dist there, or set its address in `assets.wasm`";
  return new WarrenError(code, `cannot load the wasm at ${wasm}: ${why}; ${policy}`);
}
