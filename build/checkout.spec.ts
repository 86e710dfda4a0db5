/** A change of any source of the built form causes a new build: `hca` never runs outdated sources. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { rooms } from './checkout.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

it('names the build by all folders from which its folders import', () => {
  const missing = new Set<string>();
  for (const room of rooms)
    for (const entry of readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })) {
      if (!/(?<!\.spec)\.ts$/.test(entry) || entry.includes('testing/')) continue;
      const file = join(root, room, entry);
      for (const [, path] of readFileSync(file, 'utf8').matchAll(/ from '(\.[^']+\.ts)'/g)) {
        const [target] = relative(root, resolve(dirname(file), path!)).split('/');
        if (!rooms.includes(target!) && target !== 'index.ts' && target !== 'browser.ts')
          missing.add(target!);
      }
    }
  expect([...missing]).toEqual([]);
});
