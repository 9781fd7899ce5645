import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { ApiError } from '../../../core/kube/errors.ts';
import { internal, statusObject } from '../errors.ts';

/** Size from which answers are compressed, the same as the API server's; bytes. */
const gzipFrom = 128 * 1024;

export function sendJson(res: ServerResponse, code: number, body: unknown, contentType = 'application/json'): void {
  if (res.headersSent || res.destroyed) return;
  let bytes = Buffer.from(`${JSON.stringify(body)}\n`);
  const acceptsGzip = String(res.req.headers['accept-encoding'] ?? '').includes('gzip');
  if (acceptsGzip && bytes.length >= gzipFrom) {
    bytes = gzipSync(bytes, { level: 1 });
    res.setHeader('Content-Encoding', 'gzip');
    res.setHeader('Vary', 'Accept-Encoding');
  }
  res.writeHead(code, {
    'Content-Type': contentType,
    'Content-Length': bytes.length,
    'Cache-Control': 'no-cache, private',
  });
  res.end(bytes);
}

export function sendBytes(res: ServerResponse, bytes: Buffer, contentType: string): void {
  res.writeHead(200, { 'Content-Type': contentType, 'Content-Length': bytes.length });
  res.end(bytes);
}

export function sendText(res: ServerResponse, code: number, text: string): void {
  res.writeHead(code, { 'Content-Type': 'text/plain; charset=utf-8' });
  res.end(text);
}

/** Converts any thrown value to an answer: an `ApiError` as it is, everything else to a 500. */
export const asApiError = (error: unknown): ApiError =>
  error instanceof ApiError ? error : internal(error instanceof Error ? error.message : String(error));

export function sendError(res: ServerResponse, error: unknown): void {
  const { status } = asApiError(error);
  if (status.details?.retryAfterSeconds !== undefined) {
    res.setHeader('Retry-After', String(status.details.retryAfterSeconds));
  }
  sendJson(res, status.code, statusObject(status));
}

/** Adds a warning header: `299 - "text"`. */
export function addWarning(res: ServerResponse, text: string): void {
  const safe = text.replaceAll(/[\r\n]/g, ' ').replaceAll(/["\\]/g, '\\$&');
  res.appendHeader('Warning', `299 - "${safe}"`);
}
