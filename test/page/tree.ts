/**
 * Chromium and Firefox from Debian's packages, unpacked into the cache of guests/linux and not installed: one tree, because
 * they share most dependencies.
 */
import { join } from 'node:path';
import { libraryFoldersOf } from '../../guests/linux/packages/architecture.ts';
import { defaultCacheFolder, ensureKits } from '../../guests/linux/packages/cache.ts';
import type { Kit } from '../../guests/linux/packages/kits.ts';
import { silentProgress } from '../../guests/linux/progress.ts';

/**
 * The C library is the machine's: browsers re-execute themselves for their other processes, which does not work with the tree's
 * own loader (as in tree-program.ts). Icons, printers and settings of a desktop are not needed without a window.
 */
const browsersKit: Kit = {
  name: 'browsers',
  title: 'Chromium and Firefox',
  architecture: 'amd64',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: ['chromium-headless-shell', 'firefox-esr'],
  standIns: [
    ...['libc6', 'debconf', 'dpkg', 'ucf', 'adduser', 'systemd', 'perl', 'perl-base', 'x11-common', 'procps'],
    ...['init-system-helpers', 'lsb-base', 'sysvinit-utils', 'sensible-utils', 'xdg-utils', 'x11-utils'],
    ...['debianutils', 'adwaita-icon-theme', 'dconf-gsettings-backend', 'hicolor-icon-theme', 'dbus'],
    ...['gtk-update-icon-cache', 'shared-mime-info', 'libgtk-3-common', 'libcups2', 'libcolord2'],
    ...['libpam-systemd'],
  ],
  isKernel: false,
};

/** Folder of the unpacked browsers; fetches missing parts. @throws ConfigurationError if they are unavailable */
export async function browsersTree(): Promise<string> {
  const cache = { folder: defaultCacheFolder(), mirror: undefined, progress: silentProgress };
  const [folder] = await ensureKits([browsersKit], cache);
  return folder!;
}

/** Some libraries are in separate folders. */
const libraries = [
  ...libraryFoldersOf('amd64'),
  'usr/lib/x86_64-linux-gnu/pulseaudio',
  'usr/lib/firefox-esr',
];

/** Environment of the tree's browsers. */
export const environmentOf = (tree: string, home: string): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  HOME: home,
  LD_LIBRARY_PATH: libraries.map((folder) => join(tree, folder)).join(':'),
  FONTCONFIG_PATH: join(tree, 'etc/fonts'),
});
