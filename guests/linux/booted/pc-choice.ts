/** Parameters of a PC from a user: checked by name and range, as those of the machine are. */
import { ConfigurationError, defaultsOf } from '../../../base/index.ts';
import { hintFor } from '../../../machine/profile/index.ts';
import { type PcConfig, pcParameters } from '../../pc/index.ts';

/** Parameters that need not be whole. */
export const fractionalPcParameters: ReadonlySet<string> = new Set(['cyclesPerInstruction']);

/** @throws ConfigurationError for an unknown name, suggesting the nearest, and for a value out of range */
export function pcConfigOf(chosen: Partial<PcConfig> = {}): PcConfig {
  const values: Readonly<Record<string, unknown>> = chosen;
  for (const [name, value] of Object.entries(values)) checkParameter(name, value);
  return { ...defaultsOf(pcParameters), ...chosen };
}

/** Parses `parameter=value`, several times. @throws ConfigurationError */
export function parsedPcParameters(texts: readonly string[]): Partial<PcConfig> {
  const entries = texts.map((text) => {
    const [, name = '', value = ''] = /^([^=]+)=(.+)$/.exec(text) ?? [];
    if (name === '') throw new ConfigurationError('--pc', text, 'parameter=value');
    const number = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value;
    checkParameter(name, number);
    return [name, number] as const;
  });
  return Object.fromEntries(entries) as Partial<PcConfig>;
}

function checkParameter(name: string, value: unknown): void {
  if (!Object.hasOwn(pcParameters, name)) {
    const names = Object.keys(pcParameters);
    throw new ConfigurationError(
      'parameter of the PC',
      name,
      `one of ${names.join(', ')}${hintFor(name, names)}`,
    );
  }
  const { min, max, unit } = pcParameters[name as keyof typeof pcParameters];
  const isNumber = typeof value === 'number' && value >= min && value <= max;
  if (isNumber && (fractionalPcParameters.has(name) || Number.isInteger(value))) return;
  const kind = fractionalPcParameters.has(name) ? 'a number' : 'an integer';
  throw new ConfigurationError(name, value, `${kind} from ${min} to ${max} ${unit}`);
}
