import { readFileSync, statSync } from 'node:fs';

/** How to reach one API server. */
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
  /** Headers that authenticate a request, asked for at every request: tokens are renewed while a program runs. */
  headers(): Record<string, string> | Promise<Record<string, string>>;
  /** The namespace to use when none is named. */
  namespace: string;
}

/** The configuration could not be used; the text names the file and what is wrong in it. */
export class KubeConfigError extends Error {
  readonly code = 'KubeConfigError';
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'KubeConfigError';
  }
}

/** Reads a token file when it is another than at the last call. A file that is gone for a moment keeps the last token. */
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
