import { expect, it, vi } from 'vitest';
import { publishedTexts, schemaTexts } from './json-schemas.ts';

vi.setConfig({ testTimeout: 120_000 });

it('schemas/ agrees with the declarations (else: npm run schemas)', () => {
  const made = schemaTexts();
  const published = publishedTexts();
  expect([...published.keys()]).toEqual([...made.keys()].toSorted());
  for (const [name, text] of made) expect(published.get(name), name).toBe(text);
});
