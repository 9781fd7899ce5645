import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { crc32, gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

/** A wheel of pure Python. `files` are paths and texts beside its metadata; `requires` are requirements. */
export interface Wheel {
  name: string;
  version: string;
  files: Record<string, string>;
  requires?: readonly string[];
  /** Programs: name → `module:function`. */
  scripts?: Record<string, string>;
  /** Tag of the Python that it is for. */
  python?: string;
}

/** A simple index on loopback, as pip and uv ask it. */
export class PackageIndex {
  readonly #server: Server;
  readonly #scheme: string;
  readonly #wheels = new Map<string, Map<string, Buffer>>();
  #port = 0;
  /** Paths that were asked for. */
  readonly asked: string[] = [];
  /** `Authorization` headers that came. */
  readonly authorizations: string[] = [];
  /** Answer to every request in place of the real one; `hang` never answers. */
  instead: { status: number; text?: string } | 'hang' | undefined;
  /** A digest that the pages tell instead of the true one. */
  liesAbout: string | undefined;

  private constructor(tls: { key: string; cert: string } | undefined) {
    const answer = (request: IncomingMessage, response: ServerResponse) => this.#answer(request, response);
    this.#server = tls ? createTlsServer(tls, answer) : createServer(answer);
    this.#scheme = tls ? 'https' : 'http';
  }

  static async start(tls?: { key: string; cert: string }): Promise<PackageIndex> {
    const index = new PackageIndex(tls);
    await new Promise<void>((resolve) => index.#server.listen(0, '127.0.0.1', resolve));
    index.#port = (index.#server.address() as AddressInfo).port;
    return index;
  }

  /** Address of the index, also once it is closed. */
  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.#port}/simple`;
  }

  add(...wheels: Wheel[]): this {
    for (const wheel of wheels) {
      const { name } = wheel;
      const files = this.#wheels.get(name) ?? new Map<string, Buffer>();
      const { file, data } = wheelFile(wheel);
      files.set(file, data);
      this.#wheels.set(name, files);
    }
    return this;
  }

  /** Adds a package in source form, which has its own build program and so needs no other package. */
  async addSource({ name, version, files }: Pick<Wheel, 'name' | 'version' | 'files'>): Promise<this> {
    const { file, data } = wheelFile({ name, version, files });
    const backend = [
      'import base64, os',
      'def build_wheel(directory, config_settings=None, metadata_directory=None):',
      `    with open(os.path.join(directory, ${JSON.stringify(file)}), "wb") as wheel:`,
      `        wheel.write(base64.b64decode("${data.toString('base64')}"))`,
      `    return ${JSON.stringify(file)}`,
    ];
    const content = {
      'PKG-INFO': `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
      'pyproject.toml': '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
      'backend.py': `${backend.join('\n')}\n`,
    };
    const tar = pack();
    for (const [path, text] of Object.entries(content)) tar.entry({ name: `${name}-${version}/${path}` }, text);
    tar.finalize();
    const pieces: Buffer[] = [];
    for await (const piece of tar as AsyncIterable<Buffer>) pieces.push(piece);
    const archives = this.#wheels.get(name) ?? new Map<string, Buffer>();
    this.#wheels.set(name, archives.set(`${name}-${version}.tar.gz`, gzipSync(Buffer.concat(pieces))));
    return this;
  }

  /** Answers as usual again. Requests that hang are cut off, so that they are tried again. */
  resume(): void {
    this.instead = undefined;
    this.#server.closeAllConnections();
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(request.url ?? '');
    this.asked.push(path);
    if (request.headers.authorization) this.authorizations.push(request.headers.authorization);
    const { instead } = this;
    if (instead === 'hang') return;
    if (instead) {
      response.writeHead(instead.status, { 'content-type': 'text/html' }).end(instead.text);
      return;
    }
    const [, name = '', file] = /^\/simple\/([^/]+)\/(.*)$/.exec(path) ?? [];
    const files = this.#wheels.get(name);
    if (!files) response.writeHead(404).end();
    else if (file === '') {
      const links = [...files].map(([each, data]) => {
        const digest = this.liesAbout ?? createHash('sha256').update(data).digest('hex');
        return `<a href="${each}#sha256=${digest}">${each}</a>`;
      });
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<!DOCTYPE html><html><body>${links.join('\n')}</body></html>`);
    } else {
      const data = files.get(file ?? '');
      // Files never change, as on public indexes.
      const headers = { 'content-type': 'application/octet-stream', 'cache-control': 'max-age=3600, immutable' };
      response.writeHead(data ? 200 : 404, headers).end(data);
    }
  }
}

/** The wheel's file name and content. */
export function wheelFile({ name, version, files, requires = [], scripts = {}, python = 'py3' }: Wheel): {
  file: string;
  data: Buffer;
} {
  const info = `${name.replaceAll('-', '_')}-${version}.dist-info`;
  const metadata = [
    'Metadata-Version: 2.1',
    `Name: ${name}`,
    `Version: ${version}`,
    ...requires.map((requirement) => `Requires-Dist: ${requirement}`),
  ];
  const content: Record<string, string> = {
    ...files,
    [`${info}/METADATA`]: `${metadata.join('\n')}\n`,
    [`${info}/WHEEL`]: `Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: ${python}-none-any\n`,
  };
  if (Object.keys(scripts).length > 0) {
    const lines = Object.entries(scripts).map(([script, entry]) => `${script} = ${entry}\n`);
    content[`${info}/entry_points.txt`] = `[console_scripts]\n${lines.join('')}`;
  }
  const records = Object.entries(content).map(([path, text]) => {
    const digest = createHash('sha256').update(text).digest('base64url');
    return `${path},sha256=${digest},${Buffer.byteLength(text)}\n`;
  });
  const data = zip({ ...content, [`${info}/RECORD`]: `${records.join('')}${info}/RECORD,,\n` });
  return { file: `${name.replaceAll('-', '_')}-${version}-${python}-none-any.whl`, data };
}

/** A zip archive of stored files (APPNOTE.TXT 4.3). */
function zip(files: Record<string, string>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [path, text] of Object.entries(files)) {
    const name = Buffer.from(path);
    const data = Buffer.from(text);
    // Version 2.0, no flags, stored, 1980-01-01, checksum, sizes, length of the name, no extra field.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x21, 8);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, name, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(0o100644 * 2 ** 16, 6);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03', 'latin1'), common, tail, name]));
    parts.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(directory.length, 8);
  end.writeUInt16LE(directory.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, central, end]);
}
