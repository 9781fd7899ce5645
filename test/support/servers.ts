/**
 * Returns a server for the driver Server, as a script for `node -e`: `handle` is the body of an async function of the
 * request.
 */
export function serverScript(handle: string): string {
  return `
const { createInterface } = require('node:readline');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
const stamp = () => new Date().toISOString();
const respond = (id, result) => say({ type: 'response', id, timestamp: stamp(), result });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let served = 0;
createInterface({ input: process.stdin }).on('line', async (line) => {
  const request = JSON.parse(line);
  const { id, input, method, parameters } = request;
  served += 1;
  ${handle}
});`;
}
