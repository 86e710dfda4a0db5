/** The listing of `hca profiles`: the profiles, and every parameter with unit, default, range, source and meaning. */
import { type ParameterValue, parametersByPath, rangeOf } from './parameter-tree.ts';
import { type Profile, profiles } from './profiles.ts';

export interface ParameterRow {
  readonly path: string;
  readonly unit: string;
  readonly default: ParameterValue;
  readonly range: string;
  readonly source: string;
  readonly doc: string;
}

export interface ProfileListing {
  readonly profiles: readonly Profile[];
  readonly parameters: readonly ParameterRow[];
}

export function profileListing(): ProfileListing {
  const parameters = [...parametersByPath].map(([path, parameter]) => ({
    path,
    unit: parameter.kind === 'number' ? parameter.unit : '',
    default: parameter.default,
    range: rangeOf(parameter),
    source: parameter.source,
    doc: parameter.doc,
  }));
  return { profiles, parameters };
}
