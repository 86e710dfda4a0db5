import { describe, expect, it } from 'vitest';
import { pageWith, readPage, wireTable } from './wire-table.ts';

describe('the wires in hw/hca/README.md', () => {
  it('are those of the table that connects the blocks', () => {
    expect(readPage()).toBe(pageWith(wireTable(), readPage()));
  });

  it('lead from the doorbell to the requester by the scheduler', () => {
    expect(wireTable()).toContain('| scheduler | requester |');
  });
});
