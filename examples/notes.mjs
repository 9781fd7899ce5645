// An agent that remembers: what stands in BERTH_STATE_DIR after a turn is there again in the next one, in whatever pod.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const request = JSON.parse(readFileSync(0, 'utf8'));
const file = `${process.env.BERTH_STATE_DIR}/notes.json`;
const notes = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
notes.push(request.input);
writeFileSync(file, JSON.stringify(notes));

console.log(`noise: turn ${request.turn.index}, incarnation ${request.session.incarnation}`);
console.log(process.env.BERTH_RESULT_START_MARKER);
console.log(JSON.stringify({ status: 'success', output: { notes } }));
console.log(process.env.BERTH_RESULT_END_MARKER);
console.log('noise: bye');
