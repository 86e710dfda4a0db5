/** The JSON Schema of a specification (`hca sweep --schema`), for completion and checks in an editor; spec.ts reads its keys. */
import { axisValuesMax } from './axis-text.ts';
import { workloadJsonSchema } from './workload-field.ts';

/** More points than can be computed: probably a mistyped range. */
export const pointsMax = 1_000_000;
export const seedMax = 2 ** 32 - 1;

const value = { type: ['number', 'string', 'boolean'] } as const;

const values = {
  description:
    'A range by a factor (16..4096*2) or a step (0..100+25), a list, a word, or a list of these; with sample also a span (1..1000).',
  anyOf: [value, { type: 'array', items: value, minItems: 1, maxItems: axisValuesMax }],
} as const;

const machine = {
  description: 'The machine of every point, before an axis changes it.',
  type: 'object',
  additionalProperties: false,
  properties: {
    profile: { description: 'A named profile, or a JSON file (hca profiles).', type: 'string' },
    set: {
      description: 'Parameters to change, by path (hca profiles).',
      type: 'object',
      additionalProperties: value,
    },
    seed: {
      description: 'Seed of everything drawn at random.',
      type: 'integer',
      minimum: 0,
      maximum: seedMax,
    },
    faults: {
      description: 'Faults to inject, each by its fields (hca faults).',
      type: 'array',
      items: { type: 'object', additionalProperties: { type: ['string', 'number'] } },
    },
    topology: {
      description: 'Hosts and cables: links such as 0-2,1-3, a JSON file, or its content.',
      type: ['string', 'object'],
    },
  },
} as const;

const sample = {
  description:
    'Points drawn from the axes of vary, instead of all combinations: lhs:200, or with its own seed.',
  anyOf: [
    { type: 'string', pattern: '^lhs:[1-9][0-9]*$' },
    {
      type: 'object',
      additionalProperties: false,
      required: ['latinHypercube'],
      properties: {
        latinHypercube: { description: 'Number of points.', type: 'integer', minimum: 1, maximum: pointsMax },
        seed: { type: 'integer', minimum: 0, maximum: seedMax, default: 1 },
      },
    },
  ],
} as const;

export const specSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'hca-sweep-spec/1',
  title: 'A sweep of the HCA emulator',
  type: 'object',
  additionalProperties: false,
  required: ['workload'],
  properties: {
    workload: {
      description:
        'The workload of every point, before an axis changes it: a text such as write-bw,size=64, or its fields.',
      anyOf: [{ type: 'string' }, workloadJsonSchema],
    },
    machine,
    vary: {
      description:
        'The axes: parameters by path, fields of the workload, or profile. All combinations, the last axis fastest.',
      type: 'object',
      additionalProperties: values,
    },
    points: {
      description: 'Points by hand: each is combined with every combination of vary.',
      type: 'array',
      minItems: 1,
      items: { type: 'object', additionalProperties: value },
    },
    sample,
  },
} as const;
