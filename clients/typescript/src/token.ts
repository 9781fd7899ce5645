import { readFile } from 'node:fs/promises';
import { ConfigurationError } from './errors.ts';

/** A bearer token: itself, a file that has it and is read again for each request, or a function that is called for each. */
export type TokenSource = string | { readonly file: string } | (() => string | Promise<string>);

/** Returns the token as it is now. Throws a ConfigurationError that names the source; no text has the token. */
export async function tokenOf(source: TokenSource): Promise<string> {
  const token = (await readToken(source)).trim();
  const from = nameOf(source);
  if (token === '') throw new ConfigurationError(`${from} is empty`);
  // A header with other characters would be refused with a text that has the token.
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new ConfigurationError(`${from} is not a token alone: one line without spaces`);
  return token;
}

async function readToken(source: TokenSource): Promise<string> {
  if (typeof source === 'string') return source;
  if (typeof source !== 'function') {
    try {
      return await readFile(source.file, 'utf8');
    } catch (error) {
      const { code } = error as { code?: unknown };
      throw new ConfigurationError(`${nameOf(source)} cannot be read: ${code ?? 'it is no file'}`);
    }
  }
  try {
    const token: unknown = await source();
    if (typeof token === 'string') return token;
  } catch (cause) {
    throw new ConfigurationError(`${nameOf(source)} failed; \`cause\` has its error`, { cause });
  }
  throw new ConfigurationError(`${nameOf(source)} returned no string`);
}

/** Says where a token comes from, for texts. */
export function nameOf(source: TokenSource): string {
  if (typeof source === 'string') return 'the token';
  return typeof source === 'function' ? 'the function `token`' : `the token file ${source.file}`;
}

/** Returns when a token of the cluster expires, RFC 3339; undefined for a token that does not say. */
export function expiryOf(token: string): string | undefined {
  try {
    const claims = token.split('.')[1] ?? '';
    const { exp } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) as { exp?: unknown };
    return typeof exp === 'number' ? new Date(exp * 1000).toISOString() : undefined;
  } catch {
    return undefined;
  }
}
