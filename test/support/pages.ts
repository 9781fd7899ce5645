/** The pages of the documentation, with what they say to be run. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const CHECKOUT = join(import.meta.dirname, '..', '..');

interface Block {
  /** Line of the page on which it begins, from 1. */
  line: number;
  language: string;
  /** True with the word `ignore` behind the language: a test lacks an account, a registry or hours for its commands. */
  isIgnored: boolean;
  text: string;
}

export interface Command {
  line: number;
  isIgnored: boolean;
  /** Text that a person types, without the prompt. */
  typed: string;
  /** Output that the page shows; empty where it shows none. */
  shown: string;
}

/** Paths of all pages, relative to the checkout, in alphabetical order. */
export function pages(): string[] {
  const found = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md', 'clients/**/*.md', 'test/**/*.md'], {
    cwd: CHECKOUT,
  });
  return found.toSorted();
}

const read = (page: string) => readFileSync(join(CHECKOUT, page), 'utf8');

/** Fenced blocks of a page; throws where another word than `ignore` stands behind the language. */
function blocks(page: string): Block[] {
  const text = read(page);
  return [...text.matchAll(/^```(\w*)(?: (\w+))?\n(.*?)^```$/gms)].map((match) => {
    const [, language = '', word, content = ''] = match;
    const line = text.slice(0, match.index).split('\n').length;
    if (word !== undefined && word !== 'ignore') throw new Error(`${page}:${line}: "${word}" is not "ignore"`);
    return { line, language, isIgnored: word !== undefined, text: content };
  });
}

/** Files that a page shows: the first line of a block is a comment with nothing but the file's name. */
export function shownFiles(page: string): Map<string, string> {
  const named = blocks(page).flatMap(({ text }) => {
    const [, name] = /^(?:#|\/\/) ([\w.-]+\.\w+)\n/.exec(text) ?? [];
    return name ? [[name, text] as const] : [];
  });
  return new Map(named);
}

/** Commands of a page's console blocks, in their order. A command goes on while a shell would wait for more of it. */
export function commands(page: string): Command[] {
  return blocks(page)
    .filter(({ language }) => language === 'console')
    .flatMap(({ line, isIgnored, text }) => {
      const found: Command[] = [];
      for (const [at, content] of text.trimEnd().split('\n').entries()) {
        const last = found.at(-1);
        if (content.startsWith('$ '))
          found.push({ line: line + 1 + at, isIgnored, typed: content.slice(2), shown: '' });
        else if (!last) throw new Error(`${page}:${line}: the block does not begin with "$ "`);
        else if (!last.shown && goesOn(last.typed)) last.typed += `\n${content}`;
        else last.shown += `${content}\n`;
      }
      return found;
    });
}

const goesOn = (typed: string) =>
  typed.endsWith('\\') || (/^for .* do$/m.test(typed.split('\n')[0] ?? '') && !/^done/m.test(typed));

/**
 * Returns a pattern of what a page shows: `…` stands for anything, a line of it for any lines. Columns may be of any width, and
 * names, ages and paths that differ from run to run others of their kind.
 */
export function pattern(shown: string): RegExp {
  const lines = shown.trimEnd().split('\n');
  const source = lines.map((line) => (line === '…' ? '[^]*?' : `${linePattern(line)} *\n`));
  return new RegExp(`^${source.join('').replace(/\n$/, '\n?')}\\s*$`);
}

const linePattern = (line: string) =>
  line
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replace(/ {2,}| +(?=…)/g, ' +')
    .replace(/\brun-[a-z0-9]{8}\b/g, 'run-[a-z0-9]{8}')
    .replace(/\bmap-[0-9a-f]{8}\b/g, 'map-[0-9a-f]{8}')
    .replace(/-[0-9a-f]{12}\b/g, '-[0-9a-f]{12}')
    .replace(/\b[0-9a-f]{16}\b/g, '[0-9a-f]{16}')
    .replace(/\b\d+(?:\\\.\d+)?[smhd](?:\d+s)?\b/g, '\\d[\\d.smhd]*')
    .replace(/\/home\/ann\/\S*/g, '/\\S+')
    .replaceAll('…', '.*?');

/** Link targets of a page, without those to other sites. */
export function links(page: string): string[] {
  const text = read(page)
    .replace(/^```.*?^```$/gms, '')
    .replace(/`[^`\n]*`/g, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** Returns what is wrong with a link of a page, or undefined. */
export function brokenLink(page: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(CHECKOUT, file))) return `${page}: ${target}: there is no ${file}`;
  if (anchor !== undefined && !anchors(file).has(anchor)) return `${page}: ${target}: ${file} has no such heading`;
  return undefined;
}

/** Anchors of a page's headings, as GitHub makes them. */
function anchors(page: string): Set<string> {
  const text = read(page).replace(/^```.*?^```$/gms, '');
  const found = new Set<string>();
  for (const [, heading = ''] of text.matchAll(/^#{1,6} (.*)$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = plain.replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-');
    let name = anchor;
    for (let n = 1; found.has(name); n++) name = `${anchor}-${n}`;
    found.add(name);
  }
  return found;
}
