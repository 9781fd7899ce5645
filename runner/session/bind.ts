import { type Bind, understand } from '../../core/frames/messages.ts';
import { KEY_BYTES } from '../../core/frames/seal.ts';
import { isDriver } from '../drivers/make.ts';

export interface Keys {
  up: Buffer;
  down: Buffer;
  state: Buffer;
}

/**
 * Returns the problem with a bind that a runner of this protocol version cannot carry out; undefined when there is none. A
 * bind comes in clear, so nothing in it is trusted.
 */
export function bindProblem(bind: Bind, protocol: number): string | undefined {
  if (!Number.isInteger(bind.protocol) || !understand(bind.protocol, protocol)) {
    return `it speaks protocol ${bind.protocol}, this runner ${protocol}`;
  }
  if (typeof bind.session?.uid !== 'string' || !Number.isSafeInteger(bind.incarnation)) {
    return 'it names no session and incarnation';
  }
  const keys = keysOf(bind);
  if (Object.values(keys).some((key) => key.length !== KEY_BYTES)) return `its keys are not of ${KEY_BYTES} bytes`;
  const { agent } = bind;
  if (!isDriver(agent?.driver)) return `it names the driver ${agent?.driver}, which this runner does not have`;
  if (!Array.isArray(agent.command)) return 'agent.command is no list';
  if (agent.command.length === 0 && ['Command', 'Server'].includes(agent.driver)) return 'agent.command is empty';
  return undefined;
}

export function keysOf(bind: Bind): Keys {
  const decode = (text: unknown) => Buffer.from(typeof text === 'string' ? text : '', 'base64');
  return { up: decode(bind.keys?.up), down: decode(bind.keys?.down), state: decode(bind.state?.key) };
}

/** Reports whether a repeated bind equals the accepted one. */
export function isSameBind(a: Bind, b: Bind): boolean {
  const [x, y] = [keysOf(a), keysOf(b)];
  return (
    a.session.uid === b.session?.uid &&
    a.incarnation === b.incarnation &&
    x.up.equals(y.up) &&
    x.down.equals(y.down) &&
    x.state.equals(y.state)
  );
}
