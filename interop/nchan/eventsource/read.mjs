// Reads an event stream with npm eventsource and prints each event as a line of JSON: read.mjs ADDRESS COUNT TYPE...
// It stops after so many events. A line `open` says that a connection is there.
import { EventSource } from 'eventsource';

const [address, count, ...types] = process.argv.slice(2);
const source = new EventSource(address);
let left = Number(count);
const print = (line) => process.stdout.write(line + '\n');
const event = (e) => {
  if (left === 0) return;
  print(JSON.stringify({ id: e.lastEventId, type: e.type, data: e.data }));
  if (--left === 0) source.close();
};
source.addEventListener('open', () => print('open'));
for (const type of new Set(['message', ...types])) source.addEventListener(type, event);

// When the test is gone, so is this.
process.stdin.on('end', () => process.exit(0)).resume().unref?.();
