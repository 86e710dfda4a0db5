/** Formats checked faults as options, as reports show them and the configuration's hash covers them. */
import type { Field } from './fields.ts';
import { type Fault, faultKinds } from './kinds.ts';

/**
 * Returns the text of a fault, such as `packet=corrupted,nth=5,node=1`; fields with default values are left out, except
 * the node.
 */
export function faultText(fault: Fault): string {
  const fields: Readonly<Record<string, Field<unknown>>> = faultKinds[fault.kind].fields;
  const values = fault as unknown as Readonly<Record<string, unknown>>;
  const words = Object.entries(fields).flatMap(([name, field]) => {
    const value = values[name];
    if (value === undefined) return [];
    const text = field.write(value);
    return !field.isRequired && field.preset !== undefined && text === field.write(field.preset)
      ? []
      : [`${name}=${text}`];
  });
  return [...words, `node=${fault.node}`].join(',');
}
