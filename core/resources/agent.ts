import * as z from 'zod';
import { rules } from './schema.ts';

const envVar = z
  .strictObject({
    name: z
      .string()
      .max(256)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name: letters, digits and "_", not starting with a digit'),
    value: z.string().max(32_768).optional(),
    valueFrom: z
      .strictObject({
        secretKeyRef: z.strictObject({
          name: z.string().min(1).max(253),
          key: z.string().min(1).max(253),
        }),
      })
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

/** How a turn's agent is run. Every field is optional: the class has the defaults. */
export const agent = z.strictObject({
  driver: z.enum(['Command']).optional().describe('Command: a process for every turn. Default Command.'),
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
    .describe('More arguments; with input Args, $(INPUT) and $(INPUT.field) in them are replaced.'),
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
    .describe('Variables added to the agent’s environment.'),
  input: z
    .enum(['Stdin', 'Text', 'File', 'Args'])
    .optional()
    .describe(
      'How the input reaches the program. Stdin: one line with a JSON request. Text: a string on stdin as it is. File: the request in the file that BERTH_INPUT_FILE names. Args: in the arguments. Default Stdin.',
    ),
  result: z
    .enum(['Envelope', 'Json', 'Text'])
    .optional()
    .describe(
      'What counts as the result. Envelope: a JSON envelope between the markers that BERTH_RESULT_START_MARKER and BERTH_RESULT_END_MARKER name, or in BERTH_RESULT_FILE. Json: all of stdout. Text: all of stdout. Default Envelope.',
    ),
});
export type Agent = z.infer<typeof agent>;
