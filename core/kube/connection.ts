import { readFileSync, statSync } from 'node:fs';

/** Connection settings of one API server. */
export interface Connection {
  /** Base URL, with a path where the server is behind a prefix. */
  server: string;
  tls: {
    ca?: Buffer | string;
    cert?: Buffer | string;
    key?: Buffer | string;
    servername?: string;
    rejectUnauthorized?: boolean;
  };
  /**
   * Returns the headers that authenticate a request. Called for every request, because tokens are renewed while a
   * program runs.
   */
  headers(): Record<string, string> | Promise<Record<string, string>>;
  /** Namespace for calls that name none. */
  namespace: string;
}

/** The configuration is not usable. The text names the file and the problem. */
export class KubeConfigError extends Error {
  readonly code = 'KubeConfigError';
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'KubeConfigError';
  }
}

/**
 * Returns a reader of a token file, which reads the file again when it has changed. While the file is missing the last
 * token stays.
 */
export function tokenFile(path: string): () => string {
  let token: string | undefined;
  let version = '';
  return () => {
    try {
      const { mtimeMs, ino, size } = statSync(path);
      const current = `${mtimeMs}/${ino}/${size}`;
      if (token === undefined || current !== version) {
        token = readFileSync(path, 'utf8').trim();
        version = current;
      }
    } catch (error) {
      if (token === undefined) throw new KubeConfigError(`token file ${path} cannot be read`, { cause: error });
    }
    return token as string;
  };
}
