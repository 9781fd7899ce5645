/**
 * Preload of Node that has a program of this checkout speak another protocol version:
 * `node --import file:///…/other-protocol.ts?protocol=1 runner/main.ts`.
 */
import { registerHooks } from 'node:module';

const protocol = new URL(import.meta.url).searchParams.get('protocol');
const MESSAGES = new URL('../../core/frames/messages.ts', import.meta.url).href;

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (url !== MESSAGES) return loaded;
    const source = String(loaded.source);
    const changed = source.replace(/(?<=PROTOCOL_VERSION = )\d+/, String(protocol));
    if (changed === source) throw new Error(`${url} has no PROTOCOL_VERSION other than ${protocol}`);
    return { ...loaded, source: changed };
  },
});
