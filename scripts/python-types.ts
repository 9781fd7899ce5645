/** Prints the schemas of the OpenAPI document as Python types: a TypedDict for each object, also for those without a name. */

type Schema = {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  items?: Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  description?: string;
};

/** Words that no field of a class may be named by. https://docs.python.org/3/reference/lexical_analysis.html#keywords */
const KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
);
const isField = (key: string) => /^[A-Za-z_]\w*$/.test(key) && !key.startsWith('__') && !KEYWORDS.has(key);
const quoted = (text: unknown) => JSON.stringify(text);
const upper = (text: string) => `${text[0]?.toUpperCase()}${text.slice(1).replace(/\W+/g, '_')}`;

class Printer {
  readonly #named: Record<string, Schema>;
  readonly #printed = new Map<string, string>();

  constructor(named: Record<string, Schema>) {
    this.#named = named;
  }

  print(): string[] {
    for (const name of Object.keys(this.#named)) this.#ofName(name);
    return [...this.#printed.values()];
  }

  #ofName(name: string): string {
    if (this.#printed.has(name)) return name;
    const schema = this.#named[name];
    if (!schema) throw new Error(`the document refers to ${name}, which it does not have`);
    if (schema.properties) return this.#object(name, schema);
    const type = this.#type(schema, `${name}_`);
    this.#printed.set(name, `${name}: TypeAlias = ${type}${doc(schema, '')}`);
    return name;
  }

  /** Returns the Python type of a schema; `place` names an object that has no name of its own. */
  #type(schema: Schema, place: string): string {
    if (schema.$ref) return this.#ofName(schema.$ref.replace(/^.*\//, ''));
    if (schema.const !== undefined) return `Literal[${quoted(schema.const)}]`;
    // An extensible enum has values of later releases.
    if ('x-extensible-enum' in schema) return 'str';
    if (schema.enum) return schema.type === 'string' ? `Literal[${schema.enum.map(quoted).join(', ')}]` : 'Any';
    const choice = schema.oneOf ?? schema.anyOf;
    if (choice) return choice.map((one, index) => this.#type(one, `${place}${index + 1}`)).join(' | ');
    switch (schema.type) {
      case 'string':
        return 'str';
      case 'integer':
        return 'int';
      case 'number':
        return 'float';
      case 'boolean':
        return 'bool';
      case 'array':
        return `list[${this.#type(schema.items ?? {}, `${place}Item`)}]`;
      case 'object':
        if (schema.properties) return this.#object(place, schema);
        return `dict[str, ${typeof schema.additionalProperties === 'object' ? this.#type(schema.additionalProperties, `${place}Value`) : 'Any'}]`;
      default:
        return 'Any';
    }
  }

  #object(name: string, schema: Schema): string {
    const required = new Set(schema.required);
    const fields = Object.entries(schema.properties ?? {}).map(([key, value]) => {
      const type = this.#type(value, `${name}${upper(key)}`);
      return { key, value, type: required.has(key) ? type : `NotRequired[${type}]` };
    });
    const lines = fields.every(({ key }) => isField(key))
      ? [
          `class ${name}(TypedDict):`,
          ...(schema.description ? [`    ${docstring(schema.description)}\n`] : []),
          ...fields.map(({ key, value, type }) => `    ${key}: ${type}${doc(value, '    ')}`),
          ...(fields.length === 0 && !schema.description ? ['    pass'] : []),
        ]
      : [
          `${name} = TypedDict(`,
          `    ${quoted(name)},`,
          '    {',
          ...fields.flatMap(({ key, value, type }) => [
            ...(value.description ? [`        # ${value.description.replaceAll('\n', ' ')}`] : []),
            `        ${quoted(key)}: ${type},`,
          ]),
          '    },',
          `)${doc(schema, '')}`,
        ];
    this.#printed.set(name, lines.join('\n'));
    return name;
  }
}

const doc = ({ description }: Schema, indent: string) => (description ? `\n${indent}${docstring(description)}` : '');
const docstring = (text: string) =>
  `"""${text.replaceAll('\\', '\\\\').replaceAll('"""', "'''").replace(/"$/, '" ')}"""`;

/** Returns the module with the types of the document's schemas. */
export function pythonTypes(document: object, notice: string): string {
  const { components } = document as { components: { schemas: Record<string, Schema> } };
  const types = new Printer(components.schemas).print();
  return [
    `# ${notice}`,
    '"""What goes over the wire, as the HTTP API describes it. A later release may send more fields, and further values of enumerations."""',
    '',
    'from typing import Any, Literal, NotRequired, TypeAlias, TypedDict',
    '',
    '',
    `${types.join('\n\n\n')}`,
    '',
  ].join('\n');
}
