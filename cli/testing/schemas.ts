/** Compares outputs with the published schemas; a field that no schema has is an error. */
import { Ajv, type ValidateFunction } from 'ajv';
import { publishedTexts } from '../../build/pages/json-schemas.ts';

export interface Output {
  readonly schema: string;
}

let validators: ReadonlyMap<string, ValidateFunction> | undefined;

function compiled(): ReadonlyMap<string, ValidateFunction> {
  const ajv = new Ajv({ strict: true, allowUnionTypes: true, allErrors: true });
  const schemas = [...publishedTexts().values()].map(
    (text) => JSON.parse(text) as { readonly title: string },
  );
  return new Map(schemas.map((schema) => [schema.title, ajv.compile(schema)]));
}

/** Errors of an output; empty if it is valid. */
export function faultsOf(output: Output): string[] {
  validators ??= compiled();
  const validate = validators.get(output.schema);
  if (validate === undefined) return [`no schema ${output.schema}`];
  validate(output);
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}
