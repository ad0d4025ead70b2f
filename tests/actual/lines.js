// Requests and answers as lines of JSON: each {"do": …} of standard input is answered with
// {"ok": …} or {"error": reason} on standard output.
import readline from 'node:readline';

const reasonOf = (error) =>
  (typeof error === 'string' ? error : error.code ?? error.reason) ?? error.message;

export async function serve(requests) {
  // Libraries tell what they do on standard output, which is for answers.
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
