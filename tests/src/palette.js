// The body of a function: a PNG in base64 as PNG with a palette, a third as large. What is seldom becomes what is nearest.
const whole = await createImageBitmap(await (await fetch("data:image/png;base64," + PNG)).blob());
const { width, height } = whole;
const canvas = new OffscreenCanvas(width, height).getContext("2d");
canvas.drawImage(whole, 0, 0);
const pixels = new Uint32Array(canvas.getImageData(0, 0, width, height).data.buffer);
const counts = new Map();
for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
const palette = [...counts].sort((one, other) => other[1] - one[1]).slice(0, 128).map(([colour]) => colour);
const parts = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
const distance = (one, other) => parts(one).reduce((sum, part, at) => sum + (part - parts(other)[at]) ** 2, 0);
const nearest = new Map(palette.map((colour, at) => [colour, at]));
const place = (colour) => {
  if (!nearest.has(colour)) {
    const distances = palette.map((known) => distance(known, colour));
    nearest.set(colour, distances.indexOf(Math.min(...distances)));
  }
  return nearest.get(colour);
};
const lines = new Uint8Array((width + 1) * height);
pixels.forEach((pixel, at) => (lines[at + Math.floor(at / width) + 1] = place(pixel)));
const deflated = new Blob([lines]).stream().pipeThrough(new CompressionStream("deflate"));
const body = new Uint8Array(await new Response(deflated).arrayBuffer());
const word = (number) => [24, 16, 8, 0].map((shift) => (number >>> shift) & 255);
const check = (bytes) => {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return word(~sum);
};
const chunk = (name, bytes) => {
  const named = [...name].map((letter) => letter.charCodeAt(0)).concat([...bytes]);
  return [...word(bytes.length), ...named, ...check(named)];
};
const head = [...word(width), ...word(height), 8, 3, 0, 0, 0];
const file = [137, 80, 78, 71, 13, 10, 26, 10, ...chunk("IHDR", head), ...chunk("PLTE", palette.flatMap(parts)), ...chunk("IDAT", body), ...chunk("IEND", [])];
return btoa(file.map((byte) => String.fromCharCode(byte)).join(""));
