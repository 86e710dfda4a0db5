/** Outputs that can be compared, and the check of an untrusted output. */
import { ConfigurationError } from '../../base/index.ts';

/** Schema versions by name: those of this package. */
const versions: Readonly<Record<string, number>> = {
  'hca-report': 1,
  'hca-move': 1,
  'hca-perf': 2,
  'hca-compare': 1,
  'hca-cutoff': 1,
  'hca-fabric': 1,
  'hca-fabric-failure': 1,
  'hca-devinfo': 1,
  'hca-profiles': 1,
  'hca-faults': 1,
  'hca-torture': 1,
  'hca-torture-story': 1,
  'hca-torture-served': 1,
  'hca-serve-report': 1,
  'hca-guest-report': 1,
};

export type JsonObject = Readonly<Record<string, unknown>>;

/** An output of a command, read from JSON. */
export interface Output extends JsonObject {
  readonly schema: string;
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Reads an output from a file's contents.
 * @param file for the message
 * @throws ConfigurationError for anything else, and for a schema version that is newer than this package
 */
export function checkedOutput(file: string, value: unknown): Output {
  const schema = isObject(value) ? value['schema'] : undefined;
  const [, name = '', digits = ''] =
    /^([a-z-]+)\/(\d{1,6})$/.exec(typeof schema === 'string' ? schema : '') ?? [];
  const known = Object.hasOwn(versions, name) ? versions[name]! : undefined;
  if (known === undefined)
    throw new ConfigurationError(
      `schema of ${file}`,
      schema,
      'an output of hca move, perf, compare, cutoff, fabric, devinfo, torture, serve or guest (--json or --report)',
    );
  if (Number(digits) !== known)
    throw new ConfigurationError(
      `schema of ${file}`,
      schema,
      Number(digits) > known
        ? `${name}/${known} or older: update hca to read it`
        : `${name}/${known}: write it again with this hca`,
    );
  return value as Output;
}
