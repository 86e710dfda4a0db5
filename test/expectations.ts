/** Conditions that must hold after every scenario. */
import { expect } from 'vitest';
import type { Report } from '../machine/report/schema.ts';
import type { Outcome } from './machines.ts';
import type { BystanderResult } from './programs/bystander.ts';

/** The bystanders completed rounds without an error; and the ledgers balance. */
export function expectUntouched({ results, report }: Outcome): void {
  const [client, server] = results.slice(-2) as BystanderResult[];
  expect(client!.rounds).toBeGreaterThan(3);
  expect(client!.mistakes).toEqual([]);
  expect(server).toEqual(client);
  expectBalanced(report);
}

/** All six balances hold; otherwise shows the texts of the failed ones. */
export function expectBalanced({ checks }: Report): void {
  const { balanced, ...each } = checks;
  expect(Object.values(each).flatMap(({ failures }) => failures)).toEqual([]);
  expect(balanced).toBe(true);
}

/** Driver counts when no object or number is in use. */
export const noResources = {
  contexts: 0,
  pds: 0,
  regions: 0,
  cqs: 0,
  srqs: 0,
  qps: 0,
  channels: 0,
  uars: 0,
  mttEntries: 0,
} as const;
