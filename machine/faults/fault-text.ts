/** Checked faults as the options that say the same: what a report calls them, and what the configuration's hash covers. */
import type { Field } from './fields.ts';
import { type Fault, faultKinds } from './kinds.ts';

/** Such as `packet=corrupted,nth=5,node=1`; fields with their presets are left out, the node always stands there. */
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
