import * as z from 'zod';
import { MAX_INLINE_FILES_BYTES } from './limits.ts';
import { anyJson, dnsSubdomain, duration, rules } from './schema.ts';

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

/** Relative path of one of the agent's files. Names of any characters are allowed but those of the path itself. */
const FILE_PATH = /^(?!\.{1,2}(\/|$))[^/\0]+(\/(?!\.{1,2}(\/|$))[^/\0]+)*$/;

export const isFilePath = (text: string): boolean => text.length <= 253 && FILE_PATH.test(text);

const configMapKey = () => z.string().min(1).max(253);

const agentFile = z
  .strictObject({
    configMap: dnsSubdomain()
      .optional()
      .describe(
        'A ConfigMap of the session’s namespace with the label berth.dev/agent-files: "true"; each key becomes a file of that name.',
      ),
    items: z
      .array(
        z.strictObject({
          key: configMapKey().describe('The key in the ConfigMap.'),
          path: z
            .string()
            .max(253)
            .regex(/^[^/]/, 'must be a relative path')
            .describe('Where the file is below $(BERTH_AGENT_DIR).'),
          mode: z
            .int()
            .min(0)
            .max(0o777)
            .optional()
            .describe('Its mode: 0555 if anybody may execute it, otherwise 0444. Default 0444.'),
        }),
      )
      .min(1)
      .max(256)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['path'] })
      .optional()
      .describe('Which keys become files, and which ones. Default: all keys.'),
    archive: configMapKey()
      .optional()
      .describe(
        'Instead of items: the key of binaryData with a gzipped tar archive of the files, as `berth run --with` makes it.',
      ),
    inline: z
      .record(z.string(), z.string().max(MAX_INLINE_FILES_BYTES))
      .meta({ maxProperties: 64 })
      .optional()
      .describe('Files by their paths below $(BERTH_AGENT_DIR), with their contents; 16 KiB in all.'),
  })
  .meta(
    rules(
      {
        rule: 'has(self.configMap) != has(self.inline)',
        message: 'set exactly one of configMap and inline',
      },
      {
        rule: 'has(self.configMap) || !(has(self.items) || has(self.archive))',
        message: 'items and archive are keys of a ConfigMap; set configMap, or leave them out',
      },
      {
        rule: '!(has(self.items) && has(self.archive))',
        message: 'an archive has the paths of its files; set items or archive',
      },
    ),
  );
export type AgentFile = z.infer<typeof agentFile>;

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
      'More arguments. $(BERTH_AGENT_DIR), $(BERTH_STATE_DIR), $(BERTH_SECRETS_DIR) and $(SESSION_UID) in them are replaced, with input Args also $(INPUT) and $(INPUT.field).',
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
    .describe('An existing directory of the image. Default: that of agent.files, otherwise an empty one.'),
  env: z
    .array(envVar)
    .max(128)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .optional()
    .describe(
      'Variables added to the agent’s environment. $(BERTH_AGENT_DIR), $(BERTH_STATE_DIR), $(BERTH_SECRETS_DIR) and $(SESSION_UID) in values are replaced.',
    ),
  secretFiles: z
    .array(secretFile)
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['path'] })
    .optional()
    .describe('Files with the content of Secrets, read-only, below the directory that $(BERTH_SECRETS_DIR) names.'),
  files: z
    .array(agentFile)
    .max(16)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe(
      'Files of the agent, read-only in the directory that $(BERTH_AGENT_DIR) names, which is the working directory unless another is set. They are there before the first turn of every incarnation. The class’s files come first; later ones replace earlier ones of the same path.',
    ),
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
