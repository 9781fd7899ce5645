import * as z from 'zod';
import { MAX_INLINE_FILES_BYTES } from './limits.ts';
import { anyJson, dnsSubdomain, duration, rules } from './schema.ts';

/** Text for a process: the kernel ends an argument or a variable at a NUL. */
const processText = () =>
  z
    .string()
    .max(32_768)
    .regex(/^[^\0]*$/, 'must have no NUL character (\\u0000), which no process can be given');

export const secretKeyRef = z.strictObject({
  name: z.string().min(1).max(253).describe('Name of the Secret, in the session’s namespace.'),
  key: z.string().min(1).max(253).describe('Key in the Secret’s data.'),
});

const envVar = z
  .strictObject({
    name: z
      .string()
      .max(256)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name: letters, digits and "_", not starting with a digit')
      .describe('Name of the variable. Names that begin with BERTH_ are reserved.'),
    value: processText().optional().describe('Value of the variable. Set either value or valueFrom.'),
    valueFrom: z
      .strictObject({ secretKeyRef: secretKeyRef.describe('Secret and key that hold the value.') })
      .optional()
      .describe(
        'Source of the value: a Secret of the session’s namespace. A session may name the Secrets in its class’s secrets.',
      ),
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
    .describe('Path of the file below $(BERTH_SECRETS_DIR).'),
  secretKeyRef: secretKeyRef.describe(
    'Content of the file: a key of a Secret of the session’s namespace. A session may name the Secrets in its class’s secrets.',
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
        'ConfigMap of the session’s namespace. It must have the label berth.dev/agent-files: "true". Each key becomes a file of that name.',
      ),
    items: z
      .array(
        z.strictObject({
          key: configMapKey().describe('Key in the ConfigMap.'),
          path: z
            .string()
            .max(253)
            .regex(/^[^/]/, 'must be a relative path')
            .describe('Path of the file below $(BERTH_AGENT_DIR).'),
          mode: z
            .int()
            .min(0)
            .max(0o777)
            .optional()
            .describe('Mode of the file. A mode with any execute bit gives 0555, any other 0444. Default 0444.'),
        }),
      )
      .min(1)
      .max(256)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['path'] })
      .optional()
      .describe('Keys that become files, with their paths. Default: every key.'),
    archive: configMapKey()
      .optional()
      .describe(
        'Key in binaryData with a gzipped tar archive of the files, as `berth run --with` creates it. Replaces items.',
      ),
    inline: z
      .record(z.string(), z.string().max(MAX_INLINE_FILES_BYTES))
      .meta({ maxProperties: 64 })
      .optional()
      .describe('Contents of files by path below $(BERTH_AGENT_DIR); at most 16 KiB in total.'),
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
    'Selects the line with the result: the last line in which each JSON pointer finds the given text, for example {"/type": "result"}. Numbers, true, false and null are compared as they are written.',
  ),
  output: pointer().optional().describe('JSON pointer to the output in its line. Default: the whole line.'),
  outputWhen: lineDescription()
    .optional()
    .describe('Selects the line with the output if it is not the result’s line; the last match counts.'),
  error: pointer()
    .optional()
    .describe('JSON pointer to the error text in a line of errorWhen. Default: the whole line.'),
  errorWhen: lineDescription()
    .optional()
    .describe('Selects a line that says that the turn failed. It does not count if a result follows it.'),
  usage: z
    .record(z.string().max(64), pointer())
    .optional()
    .describe('JSON pointers to numbers in the result’s line, by name. The numbers become metadata.usage of the Turn.'),
});

const tool = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .max(64)
      .regex(/^[A-Za-z0-9_.-]+$/, 'must be of letters, digits, "_", "-" and "."')
      .describe('Name that a call uses.'),
    description: z.string().max(4096).optional().describe('Purpose of the tool; list_tools searches this text.'),
    parameters: anyJson()
      .optional()
      .describe(
        'JSON Schema (2020-12) of the arguments, of type object. Arguments that do not match are refused. Default: any object.',
      ),
    command: z
      .array(processText().min(1))
      .min(1)
      .max(64)
      .optional()
      .describe('Program of the tool and its arguments, with the same replacements as in args. No shell is used.'),
    method: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('Method of the request that agent.command receives. Replaces command.'),
    timeout: duration().optional().describe('Maximum duration of a call. Default 30s.'),
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
      'Mode in which turns run. Command: one process for every turn. Server: one process for many turns, which reads requests and writes responses as JSON. Shell: the input’s command runs in bash, or in sh if the image has no bash. Tools: the input calls tools; each call runs in its own process. Default Command.',
    ),
  command: z
    .array(processText().min(1))
    .min(1)
    .max(64)
    .optional()
    .describe('Program, found on the image’s PATH, and its first arguments. No shell is used.'),
  args: z
    .array(processText())
    .max(256)
    .optional()
    .describe(
      'Further arguments. $(BERTH_AGENT_DIR), $(BERTH_STATE_DIR), $(BERTH_OUTPUT_DIR), $(BERTH_SECRETS_DIR) and $(SESSION_UID) are replaced; with input Args also $(INPUT) and $(INPUT.field).',
    ),
  resumeArgs: z
    .array(processText())
    .max(256)
    .optional()
    .describe(
      'Arguments that replace args once the state directory contains a file that matches resumeWhen, from an earlier turn or incarnation.',
    ),
  resumeWhen: z
    .string()
    .min(1)
    .max(512)
    .regex(/^(\.[^.]|[^./])(\.?[^.])*\.?$/, 'must be relative to the state directory, without ".."')
    .optional()
    .describe(
      'Pattern of files below the state directory, for example sessions/**/*.jsonl. A match makes resumeArgs replace args. Default: any file.',
    ),
  workingDir: z
    .string()
    .max(4096)
    .regex(/^\//, 'must be an absolute path')
    .optional()
    .describe(
      'Working directory; must exist in the image. Default: the directory of agent.files if there are any, otherwise an empty one.',
    ),
  env: z
    .array(envVar)
    .max(128)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .optional()
    .describe(
      'Environment variables of the agent. $(BERTH_AGENT_DIR), $(BERTH_STATE_DIR), $(BERTH_OUTPUT_DIR), $(BERTH_SECRETS_DIR) and $(SESSION_UID) in values are replaced.',
    ),
  secretFiles: z
    .array(secretFile)
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['path'] })
    .optional()
    .describe('Read-only files below $(BERTH_SECRETS_DIR) whose content comes from Secrets.'),
  files: z
    .array(agentFile)
    .max(16)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe(
      'Read-only files of the agent in $(BERTH_AGENT_DIR), which is the default working directory. They exist before the first turn of every incarnation. The class’s files come first; a later file replaces an earlier one of the same path.',
    ),
  input: z
    .enum(['Stdin', 'Text', 'File', 'Args'])
    .optional()
    .describe(
      'Way in which the program gets the input. Stdin: one line with a JSON request. Text: a string on stdin, unchanged. File: the request in the file that BERTH_INPUT_FILE names. Args: in the arguments. Default Stdin.',
    ),
  result: z
    .enum(['Envelope', 'Json', 'Text', 'JsonLines'])
    .optional()
    .describe(
      'Place and format of the result. Envelope: a JSON envelope between the markers in BERTH_RESULT_START_MARKER and BERTH_RESULT_END_MARKER, or in the file that BERTH_RESULT_FILE names. Json: all of stdout, as JSON. Text: all of stdout, as a string. JsonLines: the line that jsonLines selects. Default Envelope.',
    ),
  jsonLines: jsonLines
    .optional()
    .describe('Selects the result among lines of JSON on stdout. Every other such line is an event.'),
  server: z
    .strictObject({
      leftovers: z
        .enum(['Restart', 'Allow'])
        .optional()
        .describe(
          'Action when processes of an earlier turn still run at the next turn. Restart: these processes and the server are stopped, and the server starts again. Allow: the server gets the turn. Default Restart.',
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
    .describe('Tools that a turn can call with the driver Tools.'),
  maxParallel: z
    .int()
    .min(1)
    .max(64)
    .optional()
    .describe('Maximum calls of a turn that run at the same time with the driver Tools. Default 4.'),
  shell: z
    .strictObject({
      rewriteBackground: z
        .boolean()
        .optional()
        .describe(
          'Gives bash `A && exec B &` in place of `A && B &`, if nothing else changes. Then no subshell waits for B, and $! is the pid of B. Default true.',
        ),
    })
    .optional()
    .describe('Settings of the driver Shell.'),
});
export type Agent = z.infer<typeof agent>;
