/** Options by name: a misspelt one is an error, which TypeScript would have said and JavaScript does not. */
import { ConfigurationError } from '../../base/index.ts';

/** @throws ConfigurationError for an option that there is not; one that is undefined was not given */
export function refuseUnknown<Options extends object>(
  options: Options,
  known: Readonly<Record<keyof Options & string, true>>,
): void {
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && !Object.hasOwn(known, name))
      throw new ConfigurationError('option of a machine', name, `one of ${Object.keys(known).join(', ')}`);
}
