/**
 * Prints where the time of the tests goes: for each suite and file the wall time, the CPU time and what it waited for, from the last
 * reports on this machine. `make times ONLY=integration` prints one suite.
 */
import { parseArgs } from 'node:util';
import { lastTimes } from './report.ts';
import { table } from './table.ts';

const SUITES = ['unit', 'sim', 'integration', 'e2e'];

const { only } = parseArgs({ options: { only: { type: 'string', default: '' } } }).values;
if (only !== '' && !SUITES.includes(only)) {
  console.error(`--only is ${only}: use one of ${SUITES.join(', ')}`);
  process.exit(2);
}
const reports = SUITES.filter((suite) => only === '' || suite === only)
  .map((suite) => ({ suite, times: lastTimes(suite) }))
  .filter(({ times }) => Object.keys(times.files).length > 0);
if (reports.length === 0) console.error(`no report on this machine: run make ${only || 'test'} first`);
for (const { suite, times } of reports) for (const line of table(suite, times)) console.log(line);
process.exitCode = reports.length === 0 ? 1 : 0;
