/**
 * Loaded into a program before everything else (`--import`): its wall clock is `BERTH_TEST_CLOCK_MS` off, and every
 * SIGUSR2 moves it by as much again. Timers and monotonic time continue, as on a machine whose clock is set.
 */
const step = Number(process.env.BERTH_TEST_CLOCK_MS);
const now = Date.now;
let offset = 0;
process.on('SIGUSR2', () => {
  offset += step;
});
Date.now = () => now() + offset;
globalThis.Date = new Proxy(Date, {
  construct: (target, args) => (args.length > 0 ? Reflect.construct(target, args) : new target(target.now())),
});
