/** What every scenario must leave behind. */
import { expect } from 'vitest';
import type { Report } from '../machine/report/schema.ts';
import type { Outcome } from './machines.ts';
import type { BystanderResult } from './programs/bystander.ts';

/** The bystanders made rounds and found no mistake; and the ledgers balance. */
export function expectUntouched({ results, report }: Outcome): void {
  const [client, server] = results.slice(-2) as BystanderResult[];
  expect(client!.rounds).toBeGreaterThan(3);
  expect(client!.mistakes).toEqual([]);
  expect(server).toEqual(client);
  expectBalanced(report);
}

/** All six balances hold; if not, the words of those that do not are shown. */
export function expectBalanced({ checks }: Report): void {
  const { balanced, ...each } = checks;
  expect(Object.values(each).flatMap(({ failures }) => failures)).toEqual([]);
  expect(balanced).toBe(true);
}

/** What a driver counts of objects and numbers when none is taken. */
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
