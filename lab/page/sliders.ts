/** The parameters with a slider: those that architects change first. Values ascend in meaningful steps, not by one. */
import type { ParameterValue } from '../../machine/profile/index.ts';

export interface Slider {
  readonly path: string;
  readonly title: string;
  readonly values: readonly ParameterValue[];
}

export const sliders: readonly Slider[] = [
  {
    path: 'host.core.clockMHz',
    title: 'Core clock',
    values: [1000, 1500, 2000, 2500, 3000, 3500, 4000, 5000],
  },
  { path: 'pcie.link.generation', title: 'PCIe generation', values: [1, 2, 3, 4, 5] },
  { path: 'pcie.link.lanes', title: 'PCIe lanes', values: [1, 2, 4, 8, 16] },
  {
    path: 'pcie.link.latencyPs',
    title: 'PCIe latency',
    values: [10_000, 25_000, 50_000, 75_000, 125_000, 200_000, 300_000, 500_000],
  },
  {
    path: 'pcie.rootComplex.readLatencyPs',
    title: 'Root complex read',
    values: [80_000, 100_000, 120_000, 250_000, 400_000, 800_000],
  },
  { path: 'hca.coreClockMHz', title: 'HCA clock', values: [100, 200, 300, 400, 500, 600, 800, 1000] },
  { path: 'hca.sameQpIntervalCycles', title: 'Same-QP interval', values: [1, 10, 20, 40, 60, 100, 150, 300] },
  { path: 'hca.wqePrefetchCount', title: 'WQEs a fetch', values: [1, 2, 4, 8, 16] },
  { path: 'hca.mttCacheLines', title: 'MTT cache lines', values: [16, 64, 256, 512, 1024, 2048, 4096] },
  { path: 'dma.tagCount', title: 'DMA read tags', values: [1, 2, 4, 8, 16, 24, 32] },
  { path: 'wire.speed', title: 'Cable speed', values: ['SDR', 'DDR', 'QDR', 'FDR', 'EDR', 'HDR', 'NDR'] },
  { path: 'wire.cableMetres', title: 'Cable length', values: [1, 2, 3, 5, 10, 30, 100, 1000] },
];

/** The values of a slider in ascending order, including those of the profile and the state. */
export function valuesOf(
  { values }: Slider,
  ...others: readonly ParameterValue[]
): readonly ParameterValue[] {
  const missing = others.filter((value) => !values.includes(value));
  const all = [...new Set([...values, ...missing])];
  return typeof values[0] === 'number' ? all.sort((left, right) => Number(left) - Number(right)) : all;
}
