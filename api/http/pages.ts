import { Problem } from '../problems/problems.ts';

/** Paths that the server answers, with their methods. */
export class Pages {
  readonly #pages: { pattern: RegExp; methods: string[]; isSocket: boolean; prefix: number }[] = [];

  /** Adds a page by the pattern of its route, as /a/:b or /a/*. */
  add(url: string, methods: readonly string[], isSocket = false): void {
    const pattern = new RegExp(`^${url.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+').replace(/\*$/, '.*')}$`);
    // Number of parts of the path before those that the last parameter takes together; 0 where it takes one.
    const prefix = url.endsWith('*') ? url.split('/').length - 1 : 0;
    this.#pages.push({ pattern, methods: [...methods], isSocket, prefix });
  }

  /** True if the page is a WebSocket. */
  isSocket(url: string): boolean {
    const path = url.split('?')[0] as string;
    return this.#pages.some(({ pattern, isSocket }) => isSocket && pattern.test(path));
  }

  /** Returns the path of a URL for the log: without its query, and without what names a file in a session. */
  shown(url: string): string {
    const path = url.split('?')[0] as string;
    const page = this.#pages.find(({ pattern, prefix }) => prefix > 0 && pattern.test(path));
    return page ? [...path.split('/').slice(0, page.prefix), '*'].join('/') : path;
  }

  /** Returns the refusal of a request that no route takes: there is no such page, or it takes other methods. */
  refusal(url: string): Problem {
    const path = url.split('?')[0] as string;
    const methods = this.#pages.flatMap((page) => (page.pattern.test(path) ? page.methods : []));
    if (methods.length === 0) {
      return new Problem('NotFound', `There is no page ${path}. GET /openapi.json lists them.`);
    }
    const allow = [...new Set(methods)].join(', ');
    return new Problem('MethodNotAllowed', `${path} takes ${allow}.`, { headers: { allow } });
  }
}
