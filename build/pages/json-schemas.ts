/**
 * The published JSON Schemas (schemas/*.schema.json) of the outputs of commands, made from the types in cli/json-outputs.ts and of the
 * table of parameters. `npm run schemas` writes them; a spec compares the files with the declarations, and the outputs of the commands with
 * the files.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  type CompletedConfig,
  createFormatter,
  createParser,
  createProgram,
  DEFAULT_CONFIG,
  DefinitionType,
  LiteralType,
  type Schema,
  SchemaGenerator,
  type SubNodeParser,
} from 'ts-json-schema-generator';
import type { Parameter } from '../../base/index.ts';
import { fractionalPcParameters } from '../../guests/linux/index.ts';
import { pcParameters } from '../../guests/pc/index.ts';
import { faultKinds } from '../../machine/faults/index.ts';
import { isParameter, type ParameterGroup, parameterTree } from '../../machine/profile/index.ts';
import {
  hostCountMin,
  hostPartitionsMax,
  nodeCountMax,
  partitionMax,
  switchPortMax,
} from '../../machine/topology/index.ts';
import { workloadSchemaText } from './workload-schema.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = new URL('../../schemas/', import.meta.url);

const config: CompletedConfig = {
  ...DEFAULT_CONFIG,
  path: `${root}cli/json-outputs.ts`,
  tsconfig: `${root}tsconfig.json`,
  // The compiler of this repository has done it.
  skipTypeCheck: true,
  additionalProperties: false,
  jsDoc: 'extended',
  expose: 'all',
  topRef: false,
};

/** Types that are not read from TypeScript: their JSON form is declared here. */
const declared: Readonly<Record<string, () => Schema>> = {
  MachineConfig: () => groupSchema(parameterTree),
  PcConfig: () => groupSchema(pcParameters, fractionalPcParameters),
  FaultKind: () => ({ enum: Object.keys(faultKinds) }),
  ExactPs: () => ({
    description: 'Picoseconds; all digits as a string from 2^53 on.',
    anyOf: [{ type: 'integer' }, { type: 'string', pattern: '^-?[0-9]+$' }],
  }),
};

/** Stops the generator at the types that are declared here: a placeholder word represents each, since it compares types by content. */
const declaredTypes: SubNodeParser = {
  supportsNode: (node) => declaredName(node) !== undefined,
  createType: (node) => new DefinitionType(declaredName(node), new LiteralType(declaredName(node)!)),
};

function declaredName(node: object): string | undefined {
  const { typeName } = node as { readonly typeName?: { readonly escapedText?: unknown } };
  const name = String(typeName?.escapedText);
  return Object.hasOwn(declared, name) ? name : undefined;
}

/** All schemas by the name of their file. */
export function schemaTexts(): ReadonlyMap<string, string> {
  const program = createProgram(config);
  const parser = createParser(program, config, (chain) => chain.addNodeParser(declaredTypes));
  const generator = new SchemaGenerator(program, parser, createFormatter(config), config);
  const outputs = outputTypes().map((type) => outputOf(generator, type));
  return new Map([
    ...outputs,
    ['hca-topology-1.schema.json', topologySchemaText(generator)],
    ['hca-workload-1.schema.json', workloadSchemaText()],
  ]);
}

/** The file that `--topology` reads. Adds the ranges that types cannot express. */
function topologySchemaText(generator: SchemaGenerator): string {
  const { $ref = '', definitions = {}, $schema, ...alias } = generator.createSchema('TopologyEntry');
  const { [nameOf($ref)]: entry = alias, ...parts } = definitions as Record<string, Schema>;
  const end = parts['NodePortEntry']!.properties!;
  Object.assign(end['node']!, { type: 'integer', minimum: 0, maximum: nodeCountMax - 1 });
  Object.assign(end['port']!, { type: 'integer', minimum: 1, maximum: switchPortMax });
  const { partitions } = parts['TopologyNode']!.properties!;
  const items = { type: 'integer', minimum: 1, maximum: partitionMax };
  Object.assign(partitions!, { items, minItems: 1, maxItems: hostPartitionsMax, uniqueItems: true });
  const { hoqLife, vlStallCount } = parts['LinkEntry']!.properties!;
  Object.assign(hoqLife!, { type: 'integer', minimum: 0, maximum: 31 });
  Object.assign(vlStallCount!, { type: 'integer', minimum: 0, maximum: 7 });
  Object.assign(entry.properties!['nodes']!, { minItems: hostCountMin, maxItems: nodeCountMax });
  const text = JSON.stringify({ $schema, title: 'hca-topology/1', ...entry, definitions: parts }, null, 1);
  return `${text}\n`;
}

/** The types of `JsonOutput`: one by one, since two of them may have parts with the same name. */
function outputTypes(): string[] {
  const [, union = ''] = readFileSync(config.path!, 'utf8').split('export type JsonOutput =');
  return [...union.matchAll(/\w+Output/g)].map(([name]) => name);
}

const nameOf = (reference: string): string => decodeURIComponent(reference.replace('#/definitions/', ''));

function outputOf(generator: SchemaGenerator, type: string): readonly [file: string, text: string] {
  const { $schema, $ref = '', definitions = {}, ...alias } = generator.createSchema(type);
  const parts = Object.entries(definitions).map(([name, schema]) => [
    name,
    Object.hasOwn(declared, name) ? declared[name]!() : schema,
  ]);
  // The output itself is at the top level, not among its parts.
  const { [nameOf($ref)]: main = alias, ...rest } = Object.fromEntries(parts) as Record<string, Schema>;
  const title = String((main.properties!['schema'] as Schema).const);
  const text = JSON.stringify({ $schema, title, ...main, definitions: rest }, null, 1);
  return [`${title.replace('/', '-')}.schema.json`, `${text}\n`];
}

/** @param fractional names of numbers that need not be whole */
function groupSchema(group: ParameterGroup, fractional: ReadonlySet<string> = new Set()): Schema {
  const properties = Object.entries(group).map(([name, node]) => [
    name,
    isParameter(node)
      ? { ...parameterSchema(node), ...(fractional.has(name) ? { type: 'number' } : {}) }
      : groupSchema(node),
  ]);
  return {
    type: 'object',
    properties: Object.fromEntries(properties) as Record<string, Schema>,
    required: Object.keys(group),
    additionalProperties: false,
  };
}

function parameterSchema(parameter: Parameter): Schema {
  if (parameter.kind === 'flag') return { type: 'boolean' };
  if (parameter.kind === 'choice') return { enum: [...parameter.choices] };
  return { type: 'integer', minimum: parameter.min, maximum: parameter.max };
}

/** The existing files, by name. */
export const publishedTexts = (): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(folder)
      .toSorted()
      .map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]),
  );

function publish(): void {
  const written = new URL('../../schemas.new/', import.meta.url);
  rmSync(written, { recursive: true, force: true });
  mkdirSync(written);
  for (const [name, text] of schemaTexts()) writeFileSync(new URL(name, written), text);
  rmSync(folder, { recursive: true, force: true });
  renameSync(written, folder);
}

if (process.argv[1] === import.meta.filename) publish();
