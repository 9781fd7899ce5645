import type { ApiError } from '../core/kube/errors.ts';

/** Exit codes for scripts. */
export const EXIT = {
  ok: 0,
  failed: 1,
  refused: 2,
  unreachable: 3,
  timedOut: 124,
  /** The way to a command in a session failed, so that its exit code is not known; as ssh ends then. */
  lost: 255,
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
} as const;

/** Error that ends a command and is shown to its user as one message. */
export class CliError extends Error {
  readonly code: string;
  readonly exitCode: number;
  constructor(code: string, exitCode: number, message: string) {
    super(message);
    this.name = 'CliError';
    this.code = code;
    this.exitCode = exitCode;
  }
}

/** Error of usage or refused input, found before anything was created. */
export const refused = (message: string) => new CliError('Refused', EXIT.refused, message);

export const failed = (message: string) => new CliError('Failed', EXIT.failed, message);

export const unreachable = (message: string) => new CliError('Unreachable', EXIT.unreachable, message);

const EXIT_OF_SIGNAL = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated, SIGHUP: EXIT.hungUp };

/** Error for a signal that ends the command. */
export class Interrupted extends CliError {
  /**
   * True for a signal that does not come from the user's own Ctrl-C: the terminal was closed, or a supervisor ends this process. What
   * the command waits for goes on.
   */
  readonly detaches: boolean;
  readonly signal: keyof typeof EXIT_OF_SIGNAL;

  constructor(signal: keyof typeof EXIT_OF_SIGNAL) {
    super('Interrupted', EXIT_OF_SIGNAL[signal], 'interrupted');
    this.signal = signal;
    this.detaches = signal !== 'SIGINT';
  }
}

/** True where a signal has ended the command, while the turn or session that it waits for goes on. */
export const detached = ({ reason }: AbortSignal): boolean => reason instanceof Interrupted && reason.detaches;

/** Error of a stdout that cannot be written. A closed one is no failure: in `berth list | head` the reader has enough. */
export class OutputLost extends CliError {
  constructor({ code, message }: NodeJS.ErrnoException) {
    super('OutputLost', code === 'EPIPE' ? EXIT.ok : EXIT.failed, `stdout cannot be written: ${message}`);
  }
}

/**
 * Returns the message and the exit code for anything that a command threw. Errors are distinguished by their names, so
 * that commands that talk to no cluster need not load the client.
 */
export function describeError(error: unknown, cli: { name: string }): { message: string; exitCode: number } {
  if (error instanceof CliError) return { message: error.message, exitCode: error.exitCode };
  if (!(error instanceof Error)) return { message: String(error), exitCode: EXIT.failed };
  switch (error.name) {
    case 'ApiError':
      return describeApiError(error as ApiError);
    case 'ServerError':
      return describeServerError(error as ApiError);
    case 'ServerUnreachable':
      return { message: `the server does not answer: ${error.message}`, exitCode: EXIT.unreachable };
    case 'TransportError':
      return {
        message: `the cluster does not answer: ${error.message}\n${howToGetACluster(cli.name)}`,
        exitCode: EXIT.unreachable,
      };
    case 'KubeConfigError':
      return { message: `${error.message}\n${howToGetACluster(cli.name)}`, exitCode: EXIT.unreachable };
    case 'EnterError':
    case 'StoreMissingError':
    case 'StoreCorruptError':
      return { message: error.message, exitCode: EXIT.failed };
    default:
      return { message: error.stack ?? error.message, exitCode: EXIT.failed };
  }
}

function howToGetACluster(name: string): string {
  return `Start one on this machine with: ${name} local up --detach\nOr name one with --kubeconfig, --context or KUBECONFIG.`;
}

function describeApiError(error: ApiError): { message: string; exitCode: number } {
  if (error.code === 401) {
    return { message: `the cluster does not know who you are: ${error.message}`, exitCode: EXIT.unreachable };
  }
  if (error.code === 404 && error.status.details?.name === undefined) {
    return {
      message:
        'Berth is not installed in this cluster: it has no such resource. docs/install.md says how to install it.',
      exitCode: EXIT.unreachable,
    };
  }
  if (error.code === 429 || error.code >= 500) {
    return { message: `the cluster has a problem: ${error.message}`, exitCode: EXIT.unreachable };
  }
  const causes = error.status.details?.causes ?? [];
  const lines = causes.map(({ field, message }) => `  ${field ? `${field}: ` : ''}${message}`);
  const message = causes.length > 1 ? `${firstLine(error.message)}\n${lines.join('\n')}` : error.message;
  return { message, exitCode: EXIT.refused };
}

function describeServerError(error: ApiError): { message: string; exitCode: number } {
  if (error.code === 401) {
    const message = `the server does not accept the token: ${error.message} A token for it has the audience berth, unless the installation sets another.`;
    return { message, exitCode: EXIT.unreachable };
  }
  if (error.code === 429 || error.code >= 500) {
    return { message: `the server has a problem: ${error.message}`, exitCode: EXIT.unreachable };
  }
  return { message: error.message, exitCode: EXIT.refused };
}

/** Returns the server's own sentence without its list of causes, which follow one by one. */
function firstLine(message: string): string {
  return message.replace(/: \[.*$/s, ':');
}
