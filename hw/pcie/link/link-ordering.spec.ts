import { describe, expect, it } from 'vitest';
import {
  COMPLETION_DATA,
  CONFIG_WRITE,
  FLAG_RELAXED_ORDERING,
  MEMORY_READ,
  MEMORY_WRITE,
} from '../tlp/tlp.ts';
import { mayPass } from './link-ordering.ts';

const classes = {
  posted: MEMORY_WRITE,
  read: MEMORY_READ,
  nonPostedData: CONFIG_WRITE,
  completion: COMPLETION_DATA,
};
type ClassName = keyof typeof classes;

/**
 * PCIe base specification 3.1, table 2-40, cell by cell: the row's TLP wants to pass the column's. "a" is without, "b" with
 * relaxed ordering. Y/N counts as allowed.
 */
const table: [row: ClassName, column: ClassName, a: boolean, b: boolean][] = [
  ['posted', 'posted', false, true],
  ['posted', 'read', true, true],
  ['posted', 'nonPostedData', true, true],
  ['posted', 'completion', true, true],
  ['read', 'posted', false, false],
  ['read', 'read', true, true],
  ['read', 'nonPostedData', true, true],
  ['read', 'completion', true, true],
  ['nonPostedData', 'posted', false, true],
  ['nonPostedData', 'read', true, true],
  ['nonPostedData', 'nonPostedData', true, true],
  ['nonPostedData', 'completion', true, true],
  ['completion', 'posted', false, true],
  ['completion', 'read', true, true],
  ['completion', 'nonPostedData', true, true],
  ['completion', 'completion', true, true],
];

describe('the ordering table', () => {
  it.each(table)('PCIe 2.4.1: %s passing %s: strict %s, relaxed %s', (row, column, strict, relaxed) => {
    expect(mayPass(classes[row], 0, classes[column])).toBe(strict);
    expect(mayPass(classes[row], FLAG_RELAXED_ORDERING, classes[column])).toBe(relaxed);
  });
});
