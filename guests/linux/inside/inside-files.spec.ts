import { describe, expect, it } from 'vitest';
import { silentProgress } from '../progress.ts';
import { insideFiles } from './inside-files.ts';

const cache = { folder: '/nowhere', mirror: undefined, progress: silentProgress };

describe('the files of a guest in this process', () => {
  it('are refused for a kernel that is neither named nor there, before anything is fetched', async () => {
    await expect(insideFiles({ kernel: '6.1' }, cache)).rejects.toThrow(
      /"6\.1".*debian, debian-pae, backports, a folder of an installed kernel, or a \.deb/,
    );
  });
});
