import { open } from '../../core/frames/seal.ts';
import { CLOSE, END, type FrameHeader, MAX_BODY_CHARS, parseFrameHeader, START } from '../../core/frames/wire.ts';

/** Maximum bytes of a line in the container runtime's log; a longer line is split into several. */
const RUNTIME_LINE = 16 * 1024;
/**
 * Maximum frames begun and not complete. Frames are written one after the other; only text that looks like the start of
 * one can come between.
 */
const MAX_OPEN = 4;
/** Maximum boot nonces tried. A container has one; text that looks like frames may name others. */
const MAX_BOOTS = 16;

/** The runner's frames found in the log of an ended container. */
export interface LoggedFrames {
  /** Frames as they were written, without other text; empty when there are none. */
  text: Buffer;
  /** Boot nonce that the frames name, and the index of the key that opens them among the keys of that nonce. */
  boot: string;
  key: number;
}

interface Begun {
  header: FrameHeader;
  line: string;
  associated: Buffer;
}

/**
 * Finds the frames of `address` in a log that also has stderr: by line, or, where a line of text is longer than the
 * runtime's limit, behind a full piece of it. Any text may come between the lines of a frame, even text that looks like
 * a part of one, so a body counts only if it opens with its header. `keysOf` gives the keys to try for a boot nonce.
 */
export function framesInLog(
  log: Buffer,
  address: { session: string; incarnation: number },
  keysOf: (boot: string) => Buffer[],
): LoggedFrames | undefined {
  const keys = new Map<string, Buffer[]>();
  let found: { boot: string; key: number } | undefined;
  let begun: Begun[] = [];
  const text: string[] = [];
  for (const line of log.toString('latin1').split('\n')) {
    const start = beginning(line);
    if (start) {
      const { session, incarnation, boot } = start.header;
      if (session !== address.session || incarnation !== address.incarnation || start.header.seq === 0) continue;
      if (!keys.has(boot) && keys.size < MAX_BOOTS) keys.set(boot, keysOf(boot));
      begun = [...begun.slice(1 - MAX_OPEN), start];
      continue;
    }
    if (begun.length === 0) continue;
    for (const body of bodies(line)) {
      const match = opening(begun, body, found, keys);
      if (!match) continue;
      const { header, line: first } = match.frame;
      text.push(`${first}\n${body}\n${END}${header.seq}/${header.part}${CLOSE}\n`);
      found = { boot: header.boot, key: match.key };
      begun = begun.filter((other) => other !== match.frame);
      break;
    }
  }
  return found && { text: Buffer.from(text.join(''), 'latin1'), ...found };
}

function beginning(line: string): Begun | undefined {
  const at = line.lastIndexOf(START);
  if (at === -1 || !line.endsWith(CLOSE)) return undefined;
  const json = Buffer.from(line.slice(at + START.length, -CLOSE.length), 'latin1');
  const header = parseFrameHeader(json.toString());
  return header && { header, line: line.slice(at), associated: json };
}

/** Candidate bodies in a line: all of it, or the rest after full pieces of a longer line of text. */
function* bodies(line: string): Generator<string> {
  for (let at = 0; at < line.length; at += RUNTIME_LINE) {
    const rest = line.slice(at);
    if (rest.length <= MAX_BODY_CHARS && /^[A-Za-z0-9+/]+={0,2}$/.test(rest)) yield rest;
  }
}

function opening(
  begun: Begun[],
  body: string,
  found: { boot: string; key: number } | undefined,
  keys: Map<string, Buffer[]>,
): { frame: Begun; key: number } | undefined {
  const sealed = Buffer.from(body, 'base64');
  for (const frame of begun.toReversed()) {
    if (found && found.boot !== frame.header.boot) continue;
    for (const [key, secret] of (keys.get(frame.header.boot) ?? []).entries()) {
      if (found && found.key !== key) continue;
      if (open(secret, sealed, frame.associated)) return { frame, key };
    }
  }
  return undefined;
}
