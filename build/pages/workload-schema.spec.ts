import { describe, expect, it } from 'vitest';
import { workloadFieldNames } from '../../experiments/workloads/index.ts';
import { checkedWorkload } from '../../experiments/workloads/workload.ts';
import { workloadSchemaText } from './workload-schema.ts';

interface Property {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

describe('the JSON Schema of a workload', () => {
  const { properties } = JSON.parse(workloadSchemaText()) as { properties: Record<string, Property> };

  it('has every field', () => {
    expect(Object.keys(properties)).toEqual(['test', ...workloadFieldNames]);
  });

  /** Values inside and outside a property's range. */
  const samplesOf = ({ type, enum: values, minimum = 0, maximum = 0 }: Property): [unknown[], unknown[]] => {
    if (values !== undefined) return [[...values], ['no such choice', null, 0.5]];
    if (type === 'boolean')
      return [
        [true, false],
        [1, 'true'],
      ];
    if (type === 'integer')
      return [
        [minimum, maximum],
        [minimum - 1, maximum + 1, 1.5, String(minimum)],
      ];
    return [[], ['', 'x:y', 1]];
  };

  it.each(workloadFieldNames)('accepts of %s what the command accepts', (name) => {
    const [inside, outside] = samplesOf(properties[name]!);
    // A value that does not fit the other fields is rejected under another name, or with another message.
    const refusal = (value: unknown): string => {
      try {
        checkedWorkload({ test: 'write-bw', [name]: value });
        return '';
      } catch (error) {
        return String((error as Error).message);
      }
    };
    const range = /expected (an integer from|one of|true or false|lengths with|completions and)/;
    for (const value of inside) expect(refusal(value)).not.toMatch(range);
    for (const value of outside) expect(refusal(value)).toMatch(range);
  });
});
