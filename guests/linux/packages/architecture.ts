/**
 * Debian's names of the processor architectures whose packages kits hold, and where such packages keep libraries.
 * Sources: Debian Policy 9.1 (multiarch folders); System V ABI supplements for x86-64 and i386 (paths of the dynamic loader).
 */

export type Architecture = 'amd64' | 'i386';

export interface ArchitectureLayout {
  /** Name of the folder of libraries within usr/lib and lib. */
  readonly libraryFolder: string;
  /** File name of the dynamic loader, which is in the folder of libraries. */
  readonly loaderName: string;
  /** Folder in which programs expect the loader. It is a link to the folder of that name in usr. */
  readonly loaderFolder: 'lib' | 'lib64';
}

export const layoutOf: Readonly<Record<Architecture, ArchitectureLayout>> = {
  amd64: {
    libraryFolder: 'x86_64-linux-gnu',
    loaderName: 'ld-linux-x86-64.so.2',
    loaderFolder: 'lib64',
  },
  i386: { libraryFolder: 'i386-linux-gnu', loaderName: 'ld-linux.so.2', loaderFolder: 'lib' },
};

/** Folders of libraries, as paths within a tree of unpacked packages. */
export function libraryFoldersOf(architecture: Architecture): readonly string[] {
  const { libraryFolder } = layoutOf[architecture];
  return [`usr/lib/${libraryFolder}`, `lib/${libraryFolder}`];
}
