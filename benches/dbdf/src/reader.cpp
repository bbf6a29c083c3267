// A reader of DAPHNE's dense and CSR files that copies element by element, as a straightforward program would.
// Reads one line "dense PATH" or "csr PATH" after the other, answers with a checksum of what it read.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

template <typename T> static T get(std::ifstream &f) {
    T value;
    f.read(reinterpret_cast<char *>(&value), sizeof value);
    return value;
}

int main() {
    std::string kind, path;
    while (std::cin >> kind >> path) {
        std::ifstream f(path, std::ios::binary);
        f.seekg(2);
        uint64_t rows = get<uint64_t>(f), cols = get<uint64_t>(f);
        uint64_t sum = 0;
        auto add = [&](double value) {
            uint64_t bits;
            std::memcpy(&bits, &value, 8);
            sum += bits;
        };
        f.seekg(45);
        if (kind == "dense") {
            std::vector<double> values(rows * cols);
            for (uint64_t i = 0; i < rows * cols; i++)
                values[i] = get<double>(f);
            for (uint64_t i = 0; i < rows * cols; i += 4096)
                add(values[i]);
        } else {
            uint64_t nnz = get<uint64_t>(f);
            std::vector<uint64_t> offsets(rows + 1), columns(nnz);
            std::vector<double> values(nnz);
            for (auto &x : offsets) x = get<uint64_t>(f);
            for (auto &x : columns) x = get<uint64_t>(f);
            for (auto &x : values) x = get<double>(f);
            for (uint64_t i = 0; i < nnz; i += 4096)
                add(values[i]);
        }
        std::cout << sum << std::endl;
    }
}
