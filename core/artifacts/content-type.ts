import { posix } from 'node:path';

const TEXT = 'text/plain; charset=utf-8';

/** Types by the name's extension. Source code is text, so that a browser shows it and runs none of it. */
const TYPES: Record<string, string> = {
  '.csv': 'text/csv; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.diff': TEXT,
  '.gif': 'image/gif',
  '.gz': 'application/gzip',
  '.htm': 'text/html; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.json': 'application/json',
  '.log': TEXT,
  '.md': 'text/markdown; charset=utf-8',
  '.patch': TEXT,
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.py': TEXT,
  '.sh': TEXT,
  '.svg': 'image/svg+xml',
  '.tar': 'application/x-tar',
  '.tgz': 'application/gzip',
  '.ts': TEXT,
  '.txt': TEXT,
  '.webp': 'image/webp',
  '.xml': 'application/xml',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.zip': 'application/zip',
  '.zst': 'application/zstd',
};

/** Media type of an artifact by its name; application/octet-stream for one that is not known. */
export function contentTypeOf(name: string): string {
  return TYPES[posix.extname(name).toLowerCase()] ?? 'application/octet-stream';
}
