import { createContext, Script } from 'node:vm';
import { type ValidationResult, Validator } from '@cfworker/json-schema';
import type { ToolSpec } from '../../core/frames/messages.ts';
import { asDoubles } from '../../core/json.ts';
import { formatDuration } from '../../core/resources/duration.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { errorCode } from '../system/errors.ts';

/**
 * Time limit of a check, milliseconds: the runner answers nothing during one, and its controller gives it up after 30 s.
 */
const CHECK_MS = 1_000;

/**
 * A vm context is the only way to end a regular expression that backtracks for hours: `pattern`, and the library's own
 * for `format`.
 */
const place = createContext({ check: () => {} });
const timed = new Script('check()');

/**
 * Returns the problem with the arguments of a call; undefined when there is none. The library interprets the schema, so
 * no text of a session becomes code of the runner. Throws a TurnFailure when the schema cannot be applied.
 */
export function argumentsProblem(tool: ToolSpec, args: object): string | undefined {
  const result = validate(tool, args);
  if (result === 'TooLong') {
    return `args could not be checked within ${formatDuration(CHECK_MS)}: a pattern or format in the tool's schema takes too long on them`;
  }
  if (result === 'IllFormed') return 'args has a key that is not well-formed Unicode: half of a surrogate pair';
  if (result.valid) return undefined;
  // Errors are ordered from the outside in: the last one names the actual place.
  const error = result.errors.at(-1);
  const keys = (error?.instanceLocation ?? '#').split('/').slice(1);
  const where = ['args', ...keys.map(plain)].join('.');
  return error?.keyword === 'false'
    ? `${where} is not allowed`
    : `${where}: ${error?.error ?? 'it does not match the schema'}`;
}

/** Restores a key that the library encoded for a pointer. */
function plain(key: string): string {
  return decodeURI(key).replaceAll('~1', '/').replaceAll('~0', '~');
}

function validate({ name, parameters }: ToolSpec, args: object): ValidationResult | 'TooLong' | 'IllFormed' {
  let validator: Validator | undefined;
  try {
    const [schema, checked] = asDoubles([parameters, args]) as [object, object];
    place.check = () => {
      validator = new Validator(schema, '2020-12', true);
      return validator.validate(checked);
    };
    return timed.runInContext(place, { timeout: CHECK_MS });
  } catch (error) {
    if (errorCode(error) === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return 'TooLong';
    // The schema's own keys were encoded when it was compiled, so a key that cannot be encoded now is one of the
    // arguments.
    if (validator && error instanceof URIError) return 'IllFormed';
    // The schema refers to itself without end, for example.
    throw new TurnFailure('InvalidSpec', `agent.tools ${name}: parameters: ${(error as Error).message}`);
  }
}
