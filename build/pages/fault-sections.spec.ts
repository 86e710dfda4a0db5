import { describe, expect, it } from 'vitest';
import { commandsOf, faultListing } from '../../machine/faults/listing.ts';
import { faultSections, pageWith, readPage } from './fault-sections.ts';

describe('docs/how-to/faults.md', () => {
  it('contains what is declared (else: npm run docs)', () => {
    expect(readPage()).toBe(pageWith(faultSections(), readPage()));
  });

  it('would differ if a fault were added', () => {
    expect(pageWith(`${faultSections()}x`, readPage())).not.toBe(readPage());
  });

  it('has a command for each', () => {
    for (const listing of faultListing())
      for (const command of commandsOf(listing)) expect(readPage()).toContain(command);
  });
});
