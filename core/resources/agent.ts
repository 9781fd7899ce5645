import * as z from 'zod';
import { anyJson, duration, rules } from './schema.ts';

const secretKeyRef = () =>
  z.strictObject({
    name: z.string().min(1).max(253).describe('The Secret, in the session’s namespace.'),
    key: z.string().min(1).max(253).describe('The key in its data.'),
  });

const envVar = z
  .strictObject({
    name: z
      .string()
      .max(256)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name: letters, digits and "_", not starting with a digit')
      .describe('The variable’s name; not BERTH_….'),
    value: z.string().max(32_768).optional().describe('Its value; set either this or valueFrom.'),
    valueFrom: z
      .strictObject({ secretKeyRef: secretKeyRef().describe('Which key of which Secret.') })
      .optional()
      .describe('A value from a Secret of the namespace that the class allows to be named.'),
  })
  .meta(
    rules(
      {
        rule: 'has(self.value) != has(self.valueFrom)',
        message: 'set exactly one of value and valueFrom',
      },
      {
        rule: "!self.name.startsWith('BERTH_')",
        message: 'names that begin with BERTH_ are the runner’s own; choose another name',
      },
    ),
  );
export type EnvVar = z.infer<typeof envVar>;

const secretFile = z.strictObject({
  path: z
    .string()
    .min(1)
    .max(253)
    .regex(
      /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/,
      'must be a relative path of letters, digits, "-", "_" and ".", no part of it beginning with "."',
    )
    .describe('Where the file is below $(BERTH_SECRETS_DIR).'),
  secretKeyRef: secretKeyRef().describe(
    'Its content, from a Secret of the namespace that the class allows to be named.',
  ),
});

const POINTER = /^(\/([^~/]|~[01])*)*$/;

export const isJsonPointer = (text: string): boolean => POINTER.test(text);

const pointer = () => z.string().max(512).regex(POINTER, 'must be a JSON pointer, for example /usage/input_tokens');

/** JSON pointers into a line and the text found there; numbers, true, false and null as they are written. */
const lineDescription = () => z.record(pointer(), z.string().max(512));

const jsonLines = z.strictObject({
  resultWhen: lineDescription().describe(
    'Which line is the result: the last one in which each JSON pointer finds the given text, for example {"/type": "result"}. Numbers, true, false and null are compared as they are written.',
  ),
  output: pointer().optional().describe('JSON pointer to the output in the result’s line. Default: all of it.'),
  outputWhen: lineDescription()
    .optional()
    .describe('Which line has the output, where it is not the result’s; the last such line counts.'),
  error: pointer().optional().describe('JSON pointer to the error’s text in a line of errorWhen. Default: all of it.'),
  errorWhen: lineDescription()
    .optional()
    .describe('Which line says that the turn failed. One that is followed by a result does not count.'),
  usage: z
    .record(z.string().max(64), pointer())
    .optional()
    .describe('Numbers of the result’s line by JSON pointer; they become usage in the Turn’s metadata.'),
});

const tool = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .max(64)
      .regex(/^[A-Za-z0-9_.-]+$/, 'must be of letters, digits, "_", "-" and "."')
      .describe('What a call names it by.'),
    description: z.string().max(4096).optional().describe('What it is for; list_tools searches in it.'),
    parameters: anyJson()
      .optional()
      .describe(
        'JSON Schema (2020-12) of the arguments, of type object. Arguments that do not match it are refused. Default: any object.',
      ),
    command: z
      .array(z.string().min(1).max(32_768))
      .min(1)
      .max(64)
      .optional()
      .describe('The program of the tool and its arguments, which are replaced as in args. Never a shell.'),
    method: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('Instead of a command of its own: the method of the request that agent.command gets.'),
    timeout: duration().optional().describe('How long a call may run. Default 30s.'),
  })
  .meta(
    rules({
      rule: 'has(self.command) != has(self.method)',
      message: 'set exactly one of command and method',
    }),
  );

/** Settings of a turn's agent. Every field is optional: the class has the defaults. */
export const agent = z.strictObject({
  driver: z
    .enum(['Command', 'Server', 'Shell', 'Tools'])
    .optional()
    .describe(
      'Command: a process for every turn. Server: one process for many turns, which reads requests and writes responses as JSON. Shell: the input’s command is run by bash, or sh where there is none. Tools: the input calls tools, each call in a process of its own. Default Command.',
    ),
  command: z
    .array(z.string().min(1).max(32_768))
    .min(1)
    .max(64)
    .optional()
    .describe('The program, found on the image’s PATH, and its first arguments. Never a shell.'),
  args: z
    .array(z.string().max(32_768))
    .max(256)
    .optional()
    .describe(
      'More arguments. $(BERTH_STATE_DIR), $(BERTH_SECRETS_DIR) and $(SESSION_UID) in them are replaced, with input Args also $(INPUT) and $(INPUT.field).',
    ),
  resumeArgs: z
    .array(z.string().max(32_768))
    .max(256)
    .optional()
    .describe(
      'Instead of args once the state directory holds what resumeWhen says, from an earlier turn or incarnation.',
    ),
  resumeWhen: z
    .string()
    .min(1)
    .max(512)
    .regex(/^(\.[^.]|[^./])(\.?[^.])*\.?$/, 'must be relative to the state directory, without ".."')
    .optional()
    .describe(
      'A pattern of files below the state directory, for example sessions/**/*.jsonl: the first one turns args into resumeArgs. Default: any file.',
    ),
  workingDir: z
    .string()
    .max(4096)
    .regex(/^\//, 'must be an absolute path')
    .optional()
    .describe('An existing directory of the image. Default: an empty one.'),
  env: z
    .array(envVar)
    .max(128)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .optional()
    .describe(
      'Variables added to the agent’s environment. $(BERTH_STATE_DIR), $(BERTH_SECRETS_DIR) and $(SESSION_UID) in values are replaced.',
    ),
  secretFiles: z
    .array(secretFile)
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['path'] })
    .optional()
    .describe('Files with the content of Secrets, read-only, below the directory that $(BERTH_SECRETS_DIR) names.'),
  input: z
    .enum(['Stdin', 'Text', 'File', 'Args'])
    .optional()
    .describe(
      'How the input reaches the program. Stdin: one line with a JSON request. Text: a string on stdin as it is. File: the request in the file that BERTH_INPUT_FILE names. Args: in the arguments. Default Stdin.',
    ),
  result: z
    .enum(['Envelope', 'Json', 'Text', 'JsonLines'])
    .optional()
    .describe(
      'What counts as the result. Envelope: a JSON envelope between the markers that BERTH_RESULT_START_MARKER and BERTH_RESULT_END_MARKER name, or in BERTH_RESULT_FILE. Json: all of stdout. Text: all of stdout. JsonLines: where jsonLines says. Default Envelope.',
    ),
  jsonLines: jsonLines
    .optional()
    .describe('Where the result stands among lines of JSON on stdout; every other such line is an event.'),
  server: z
    .strictObject({
      leftovers: z
        .enum(['Restart', 'Allow'])
        .optional()
        .describe(
          'What happens when processes that an earlier turn started still run at the next turn. Restart: the server is stopped with them and started again. Allow: it gets the turn. Default Restart.',
        ),
    })
    .optional()
    .describe('Settings of the driver Server.'),
  tools: z
    .array(tool)
    .min(1)
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .optional()
    .describe('What the driver Tools can call.'),
  maxParallel: z
    .int()
    .min(1)
    .max(64)
    .optional()
    .describe('How many calls of one turn the driver Tools runs at once. Default 4.'),
  shell: z
    .strictObject({
      rewriteBackground: z
        .boolean()
        .optional()
        .describe(
          'Whether bash gets A && exec B & for A && B &, where that changes nothing else, so that no subshell waits for B and $! is its pid. Default true.',
        ),
    })
    .optional()
    .describe('Settings of the driver Shell.'),
});
export type Agent = z.infer<typeof agent>;
