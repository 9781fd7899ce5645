/**
 * Sends PER_SECOND requests to the HTTP API, a multiple of 40, over connections that are kept and over new ones, beside requests that wait,
 * and tries none again. On SIGTERM it prints what became of them, as one line of JSON. READ, WAIT: URLs. TOKENS: tokens of its callers.
 */
const http = require('node:http');

const EVERY_MS = 50;
const AT_ONCE = (process.env.PER_SECOND * EVERY_MS) / 1000;
const WAITS = 4;
/** Requests under way at most, 60 of 200 a second, which is fewer than one caller may have: a slow machine gets fewer requests. */
const MOST_OPEN = 0.3 * process.env.PER_SECOND;
/** Failures that are shown. */
const SHOWN = 20;
const kept = new http.Agent({ keepAlive: true });
const tokens = process.env.TOKENS.split(' ');
const begun = performance.now();
const failed = [];
const answered = new Set();
let sent = 0;
let open = 0;
let isOver = false;

/** Sends a request; `kind` names it. Resolves once it has ended, however. */
function send(kind, url, agent) {
  const headers = { authorization: `Bearer ${tokens[sent++ % tokens.length]}` };
  open += 1;
  return new Promise((resolve) => {
    let isEnded = false;
    const ended = (problem) => {
      if (isEnded) return;
      isEnded = true;
      open -= 1;
      if (problem) failed.push(`${kind} at ${((performance.now() - begun) / 1000).toFixed(1)} s: ${problem}`);
      else if (!answered.has(kind)) {
        answered.add(kind);
        if (answered.size === 3) console.log('every kind of request was answered');
      }
      resolve();
    };
    const request = http.get(url, { agent, headers }, (answer) => {
      answer.resume();
      answer.once('error', (error) => ended(error.message));
      answer.once('end', () => ended(answer.statusCode === 200 ? undefined : `HTTP ${answer.statusCode}`));
    });
    request.once('error', (error) => ended(`${error.code}: ${error.message}`));
  });
}

async function wait() {
  while (!isOver) await send('a wait', process.env.WAIT, false);
}

const sending = setInterval(() => {
  for (let i = 0; i < AT_ONCE && open < MOST_OPEN; i++) {
    const [kind, agent] = i % 2 === 0 ? ['over a kept connection', kept] : ['over a new connection', false];
    send(kind, process.env.READ, agent);
  }
}, EVERY_MS);
for (let i = 0; i < WAITS; i++) wait();

process.once('SIGTERM', () => {
  isOver = true;
  clearInterval(sending);
  const seconds = Math.round((performance.now() - begun) / 1000);
  setInterval(() => {
    if (open > 0) return;
    process.stdout.write(
      `${JSON.stringify({ sent, seconds, failed: failed.length, shown: failed.slice(0, SHOWN) })}\n`,
      () => process.exit(0),
    );
  }, EVERY_MS);
});
