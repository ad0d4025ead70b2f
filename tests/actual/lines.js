// Serves requests as lines of JSON: answers each {"do": …} on standard input with {"ok": …} or
// {"error": reason} on standard output.
import readline from 'node:readline';

const reasonOf = (error) =>
  (typeof error === 'string' ? error : error.code ?? error.reason) ?? error.message;

export async function serve(requests) {
  // Libraries log to standard output, which is reserved for answers.
  console.log = console.info = console.warn = console.error;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    let answer;
    try {
      answer = { ok: (await requests[request.do](request)) ?? null };
    } catch (error) {
      console.error(error);
      answer = { error: reasonOf(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}
