/** Topic of a figure, by its path. */

/** Groups in display order. */
export const figureGroups = [
  'results',
  'times',
  'operations',
  'pcie',
  'caches',
  'interrupts',
  'cpu',
  'memory',
  'cable',
  'switches',
  'adapter',
  'faults',
  'other',
] as const;
export type FigureGroup = (typeof figureGroups)[number];

/** Names along a path, at any depth; the first row with one of them decides. */
const names: readonly (readonly [FigureGroup, readonly string[]])[] = [
  [
    'results',
    [
      ...[
        'bottleneck',
        'isCorrect',
        'isEqual',
        'isBalanced',
        'sha256',
        'received',
        'checks',
        'findings',
        'refused',
        'wrong',
      ],
      ...['fetchAddTotal', 'compareSwapTotal', 'failures', 'races', 'unownedAccesses', 'analyses', 'defects'],
    ],
  ],
  ['faults', ['faults', 'deviceFaults']],
  ['pcie', ['pcie', 'tlps']],
  ['caches', ['caches']],
  ['interrupts', ['interrupts', 'intx']],
  ['cpu', ['cpu', 'cycles', 'cyclesTotal', 'contextSwitches', 'systemCalls', 'copies', 'copiedBytes']],
  ['memory', ['memory', 'memoryBus', 'iommu', 'onDemand']],
  ['cable', ['wire']],
  ['switches', ['switches', 'outputs']],
  ['adapter', ['hca', 'nic', 'neighbours']],
];

export function groupOf(path: string): FigureGroup {
  const along = new Set(path.split('.'));
  const row = names.find(([, some]) => some.some((name) => along.has(name)));
  if (row !== undefined) return row[0];
  if (/(Ps|PerSecond)(\.|$)/.test(path)) return 'times';
  return along.has('operations') ? 'operations' : 'other';
}
